package metrics

import (
	"maps"
	"slices"

	"cellserver/internal/edge/door"
)

// collectDoors sends the counts of the protocols beside RESP, by door.
func (c *Config) collectDoors(to sink) {
	requests := desc("door_requests_total", "Requests by door and outcome: allowed (or done), limited, refused for their own "+
		"fault (arguments, rights, tokens), or failed for the server's (loading, disk, store, memory, maximum of clients).", "door", "outcome")
	durations := desc("door_request_duration_seconds", "Duration of requests by door in seconds, from their header to their answer.", "door")
	for _, name := range slices.Sorted(maps.Keys(c.Doors)) {
		counts := c.Doors[name].Counts()
		for _, outcome := range door.Outcomes() {
			to.count(requests, counts.Of(outcome), name, outcome.String())
		}
		to <- newDuration(durations, counts.Durations, counts.Since, name)
	}
}
