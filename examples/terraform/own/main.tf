terraform {
  required_providers { berths = { source = "example.com/own/berths" } }
}

resource "berths_berth" "north" {
  name     = "north"
  length   = 120
  services = ["water", "power"]
}

output "number" {
  value = berths_berth.north.number
}
