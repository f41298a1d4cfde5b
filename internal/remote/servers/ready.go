package servers

import (
	"context"
	"sync"
)

// Ready is nil if all masters run scripts for us now, and else says why one does not. It is also what tries a server again that
// nobody else asks.
func (p *Pool) Ready(ctx context.Context) error {
	masters, err := p.Masters(ctx)
	if err != nil {
		return err
	}
	if len(masters) == 0 {
		return &Failed{Reason: Cluster, Text: "the cluster has no masters with slots"}
	}
	probe := NewScript("return 1")
	errs := make([]error, len(masters))
	var wg sync.WaitGroup
	for i, s := range masters {
		wg.Go(func() {
			c := &Call{Script: probe}
			p.Send(ctx, s, []*Call{c}, 0)
			errs[i] = c.Err
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
