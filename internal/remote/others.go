package remote

import (
	"context"

	"cellserver/internal/remote/servers"
)

// others decides what was taken of a group, in order, on the state of whatever kind that its key has: item.decided or
// item.fail for each. It may wait as long as ctx lasts.
func (s *Store) others(_ context.Context, g *group) {
	for it := g.taken.first; it != nil; it = it.next {
		it.fail(&servers.Failed{Reason: servers.Refused, Text: "only funnels are supported"})
	}
}
