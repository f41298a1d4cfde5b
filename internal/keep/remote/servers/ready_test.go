package servers

import (
	"context"
	"strings"
	"sync"
)

// ready returns a *Failed unless all masters run scripts now.
func (p *Pool) ready(ctx context.Context) error {
	masters, err := p.Masters(ctx)
	if err != nil {
		return err
	}
	if len(masters) == 0 {
		return &Failed{Reason: Cluster, Text: "the cluster has no masters with slots"}
	}
	errs := make([]error, len(masters))
	var wg sync.WaitGroup
	for i, s := range masters {
		wg.Go(func() {
			errs[i] = p.readyAt(ctx, s)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *Pool) readyAt(ctx context.Context, s *Server) error {
	probe := &Call{Script: NewScript("return 1")}
	if p.Send(ctx, s, []*Call{probe}, 0); probe.Err != nil {
		return probe.Err
	}
	// A script without keys runs anywhere. A server that forbids the check counts as ready.
	if p.cluster != nil {
		info, err := s.Client().ClusterInfo(ctx).Result()
		if err == nil && !strings.Contains(info, "cluster_state:ok") {
			return &Failed{Reason: Cluster, Text: s.Addr + ": the cluster is down, or some slots have no server"}
		}
		return nil
	}
	if role, err := s.Client().Do(ctx, "role").Slice(); err == nil && len(role) > 0 && role[0] == "slave" {
		return &Failed{Reason: ReadOnly, Text: s.Addr + ": is a replica, which cannot write"}
	}
	return nil
}
