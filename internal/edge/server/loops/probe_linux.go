package loops

import (
	"context"
	"fmt"
)

func (d *driver) Probe(ctx context.Context) error {
	answers := make([]chan struct{}, len(d.all))
	for i, l := range d.all { // all are asked before the first is waited for
		answers[i] = make(chan struct{})
		l.inbox.probe(answers[i])
	}
	for i, answer := range answers {
		select {
		case <-answer:
		case <-ctx.Done():
			return fmt.Errorf("server: %s does not respond: %w", d.loopName(i), ctx.Err())
		}
	}
	return d.others.Probe(ctx)
}

// probe has the loop close answer when it comes around. One that has ended does not.
func (b *inbox) probe(answer chan<- struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probes = append(b.probes, answer)
	b.ringLocked()
}
