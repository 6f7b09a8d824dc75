# At least one kind of each system, in a project of its own. `trimtab terraform install` first, then:
#   terraform -chdir=examples/terraform init
#   terraform -chdir=examples/terraform apply

terraform {
  required_providers { trimtab = { source = "trimtab.dev/trimtab/trimtab" } }
}
provider "trimtab" {}

variable "project" {
  default = "harbour"
}

# the hub: a project, an addon, and the blueprint that clusters follow

resource "trimtab_hub_project" "harbour" {
  metadata = {
    name        = var.project
    description = "Everything that this configuration manages."
  }
  spec = { deletion = "Cascade" }
}

resource "trimtab_infra_addon" "limits" {
  metadata = { name = "limits", project = trimtab_hub_project.harbour.metadata.name }
  spec = {
    namespace = "harbour-system"
    artifact  = { yaml_in_repo = { repository = trimtab_hub_repository.fleet.metadata.name, revision = "main", paths = ["limits.yaml"] } }
  }
  wait = false
}

resource "trimtab_infra_blueprint" "edge" {
  metadata = {
    name        = "edge"
    project     = trimtab_hub_project.harbour.metadata.name
    description = "What every cluster at the edge has."
  }
  spec = { addons = { (trimtab_infra_addon.limits.metadata.name) = {} } }
  wait = false
}

# Git sync: where the documents are, and what of them is applied

resource "trimtab_hub_repository" "fleet" {
  metadata = { name = "fleet", project = trimtab_hub_project.harbour.metadata.name }
  spec     = { endpoint = "https://git.example.com/team/fleet.git" }
  wait     = false # it is an example: there is no such server
}

resource "trimtab_hub_git_sync" "fleet" {
  metadata = { name = "fleet", project = trimtab_hub_project.harbour.metadata.name }
  spec = {
    repository = trimtab_hub_repository.fleet.metadata.name
    suspend    = true
    include    = ["Workload", "Blueprint"] # a set: their order means nothing
    triggers   = { interval = "10m" }
  }
  wait = false
}

# networks: a range, how to log in, and the rule that sweeps it

resource "trimtab_discovery_discovery_rule_ip_range" "quay" {
  metadata = { name = "quay", namespace = trimtab_hub_project.harbour.metadata.name }
  spec     = { prefixes = { "192.0.2.0/28" = { excludes = ["192.0.2.1"] } } } # by its prefix: a map
}

resource "trimtab_discovery_target_connection_profile" "gnmi" {
  metadata = { name = "gnmi", namespace = trimtab_hub_project.harbour.metadata.name }
  spec     = { protocol = "gnmi", port = 57400 }
}

resource "trimtab_discovery_discovery_rule" "quay" {
  metadata = { name = "quay", namespace = trimtab_hub_project.harbour.metadata.name }
  spec = {
    suspend = true
    period  = "60m" # the same as 1h: no diff
    rule_ref = {
      group   = "discovery.trimtab.dev"
      version = "v1alpha1"
      kind    = "DiscoveryRuleIPRange"
      name    = trimtab_discovery_discovery_rule_ip_range.quay.metadata.name
    }
    discovery_profile = {
      credentials         = "quay"
      connection_profiles = [trimtab_discovery_target_connection_profile.gnmi.metadata.name]
    }
    target_connection_profiles = [{
      connection_profile = trimtab_discovery_target_connection_profile.gnmi.metadata.name
      credentials        = "quay"
    }]
  }
  wait = false
}

# images: a registry that is looked through every night

resource "trimtab_images_registry" "store" {
  metadata = { name = "store", namespace = trimtab_hub_project.harbour.metadata.name }
  spec = {
    uri                = "https://registry.example.com"
    repositories       = ["team/web", "team/api"]
    discovery_schedule = { cron_schedule = ["0 1 * * *"], time_zone = "Europe/Berlin" }
  }
  wait = false
}

# any API: what a service is, for kinds that are made from its document

resource "trimtab_rest_rest_service" "azure" {
  metadata = { name = "${var.project}-azure" }
  spec = {
    endpoint   = "https://management.azure.com"
    document   = { config_map = { namespace = "trimtab-system", name = "rest-azure-openapi", key = "openapi.json.gz" } }
    parameters = { subscriptionId = "00000000-0000-0000-0000-000000000001" }
  }
  wait = false
}

# delivery: a metric that releases are judged by

resource "trimtab_delivery_metric_template" "errors" {
  metadata = { name = "errors", namespace = trimtab_hub_project.harbour.metadata.name }
  spec = {
    query = <<-EOT
      sum(rate(requests_total{workload="{{ target }}", code=~"5.."}[{{ window }}]))
        / sum(rate(requests_total{workload="{{ target }}"}[{{ window }}]))
    EOT
  }
}

# what was made, read back as data

data "trimtab_infra_blueprints" "all" {
  project    = trimtab_hub_project.harbour.metadata.name
  depends_on = [trimtab_infra_blueprint.edge]
}

output "blueprints" {
  value = [for each in data.trimtab_infra_blueprints.all.items : each.metadata.name]
}
