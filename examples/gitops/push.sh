#!/bin/sh
# What GitHub sends after a push to main, signed with the secret of webhook.yaml.
body='{"ref":"refs/heads/main","after":"'$(date +%s%N)'","commits":[{"modified":["settings.yaml"]}]}'
signature=$(printf %s "$body" | openssl dgst -sha256 -hmac not-a-real-secret | sed 's/.* //')
printf %s "$body" | curl -sS -o /dev/null -w '%{http_code}\n' --data-binary @- -H 'X-GitHub-Event: push' \
  -H "X-Hub-Signature-256: sha256=$signature" "${1:-http://127.0.0.1:7481}/shop/fleet/github"
