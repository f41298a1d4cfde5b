package app

import (
	"slices"
	"strings"
	"sync"
)

// parts are the goroutines of a running server by name, so that a shutdown can name those that hang. The zero
// value is ready. It is safe for concurrent use.
type parts struct {
	wg sync.WaitGroup

	mu      sync.Mutex // guards running
	running []string   // names
}

// run starts a part in its own goroutine.
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

// String lists the running parts.
func (p *parts) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := slices.Clone(p.running)
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}
