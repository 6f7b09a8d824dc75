"""The page that maps Terraform's types to groups, versions and kinds: `make docs`.

    python scripts/terraform_types.py        # docs/terraform-types.md

It asks a server with all systems, since that is what there is to map.
"""

import tempfile
from pathlib import Path

from trimtab.terraform.docs.kinds import types_page
from trimtab.terraform.kinds.access import Settings, access
from trimtab.terraform.kinds.api import Api
from trimtab.terraform.kinds.catalog import definitions
from trimtab.terraform.kinds.definition import head
from trimtab.testing.embedded import TrimtabServer

PAGE = Path(__file__).resolve().parent.parent / "docs" / "terraform-types.md"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, TrimtabServer(Path(folder)) as server:
        api = Api(access(Settings(kubeconfig=str(server.kubeconfig)), {}))
        try:
            PAGE.write_text(types_page({one.name: head(one) for one in definitions(api.get)}))
        finally:
            api.close()


if __name__ == "__main__":
    main()
