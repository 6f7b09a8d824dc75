"""The same provider on the PyPI package `tf`. It runs in an environment of its own, which has that package alone."""

from tf.iface import Provider, Resource
from tf.runner import run_provider
from tf.schema import Attribute, Schema
from tf.types import String


class Thing(Resource):
    def __init__(self, provider):
        pass

    @classmethod
    def get_name(cls):
        return "thing"

    @classmethod
    def get_schema(cls):
        return Schema([Attribute("name", String(), required=True), Attribute("id", String(), computed=True)])

    def create(self, ctx, planned):
        return {**planned, "id": f"small/{planned['name']}"}

    def read(self, ctx, current):
        return current

    def update(self, ctx, current, planned):
        return {**planned, "id": current["id"]}

    def delete(self, ctx, current):
        pass


class Small(Provider):
    def get_model_prefix(self):
        return "small_"

    def full_name(self):
        return "example.com/bench/small"

    def get_provider_schema(self, diags):
        return Schema()

    def validate_config(self, diags, config):
        pass

    def configure_provider(self, diags, config):
        pass

    def get_data_sources(self):
        return []

    def get_resources(self):
        return [Thing]


if __name__ == "__main__":
    run_provider(Small())
