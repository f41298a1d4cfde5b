package app

import (
	"slices"
	"strings"
	"sync"
)

// parts are the goroutines of a running server, by name, so that a shutdown can say which of them do not end. The zero value
// has none. It is safe for concurrent use.
type parts struct {
	wg sync.WaitGroup

	mu      sync.Mutex // guards running
	running []string   // their names
}

// run runs a part in a goroutine of its own.
func (p *parts) run(name string, part func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = append(p.running, name)
	p.wg.Go(func() {
		defer p.ended(name)
		part()
	})
}

func (p *parts) ended(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.running, name)
	p.running = slices.Delete(p.running, i, i+1)
}

func (p *parts) wait() { p.wg.Wait() }

// String lists the parts that have not ended.
func (p *parts) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := slices.Clone(p.running)
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}
