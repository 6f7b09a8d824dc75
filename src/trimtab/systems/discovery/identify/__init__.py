"""What a device says of itself, one module a protocol: gnmi, netconf, ssh, snmp. tls is what gNMI trusts a device by."""
