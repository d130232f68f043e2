#!/bin/sh
# HEALTHCHECK of the image: exits with 0 if the bridge of this container serves, else with 1. A bridge that serves writes the
# seconds since the machine was started into a file every two seconds (src/command/heartbeat.ts). So the check knows of one that
# has not started, has stopped or hangs, whatever its configuration says, and starts no other program.
file=${MCP_BRIDGE_HEALTH_FILE:-/dev/shm/mcp-bridge-health}
# A container with very little CPU may stand still for a while.
longest=30

read -r beat 2>/dev/null <"$file" || beat=
case $beat in
'' | *[!0-9]*)
  echo "no bridge serves here: $file is missing"
  exit 1
  ;;
esac
read -r now _ </proc/uptime
age=$((${now%%.*} - beat))
if [ "$age" -gt "$longest" ]; then
  echo "the bridge hangs: it last wrote to $file $age s ago"
  exit 1
fi
echo "serving, seen $age s ago"
