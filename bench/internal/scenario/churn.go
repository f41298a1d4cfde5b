package scenario

import (
	"context"

	"cellserver/bench/internal/peer"
	"cellserver/bench/internal/report"
)

// churn compares keys whose funnels drain between two calls, which come back at once, with keys that last.
func (s *Suite) churn(ctx context.Context) error {
	const lasting, churning = "cellserver, lasting", "cellserver, churning"
	var started servers
	defer started.stop()
	all, err := s.cellAndSet(ctx, &started)
	if err != nil {
		return err
	}
	other, err := started.add(s.startCell(ctx))
	if err != nil {
		return err
	}
	all[0].name, all[0].command = lasting, peer.ThrottleUser(86_400)
	all = append(all, contestant{churning, other, peer.ThrottleUser(60)})
	lanes, err := s.race(ctx, "churn", all)
	if err != nil {
		return err
	}
	s.goal(
		ratio("16 pipelined, lasting keys: CPU per request, by that of SET", 0.65, lanes[lasting][16], lanes[set][16], report.CPU),
		ratio("16 pipelined, churning keys: CPU per request, by that of SET", 0.72, lanes[churning][16], lanes[set][16], report.CPU),
		ratio("128 pipelined, lasting keys: CPU per request, by that of SET", 0.45, lanes[lasting][128], lanes[set][128], report.CPU),
		ratio("16 pipelined: CPU per request of churning keys, by that of lasting ones", 1.10, lanes[churning][16], lanes[lasting][16], report.CPU),
		ratio("16 pipelined: resident memory with churning keys, by that with lasting ones", 1.15, lanes[churning][16], lanes[lasting][16], report.RSS),
	)
	return nil
}
