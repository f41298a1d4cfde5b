package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"cellserver/lab/soak/internal/attack"
	"cellserver/lab/soak/internal/target"
)

// floodSize makes floods as large as those that an unbounded server suffered from.
const floodSize = 10

// measureMemory prints the peak resident memory with distinct keys, and with all floods at once.
func (o *measureOptions) measureMemory(ctx context.Context, binary string, out io.Writer) error {
	_, _ = fmt.Fprintf(out, "| load | largest resident | of --maxmemory %dmb | at the end |\n| --- | ---: | ---: | ---: |\n", o.maxMB)
	const fillers = 4
	err := o.measureRSS(ctx, binary, out, fmt.Sprintf("%d distinct keys", o.keys), func(server *target.Server) error {
		failed := make(chan error, fillers)
		for i := range fillers {
			go func() { failed <- attack.Fill(ctx, server, fmt.Sprintf("distinct:%d:", i), o.keys/fillers) }()
		}
		var err error
		for range fillers {
			if e := <-failed; e != nil {
				err = e
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return o.measureRSS(ctx, binary, out, "all floods at once", func(server *target.Server) error {
		return o.flood(ctx, server)
	})
}

// flood runs all floods at once, four times as long as a trial.
func (o *measureOptions) flood(ctx context.Context, server *target.Server) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(4*o.seconds*float64(time.Second)))
	defer cancel()
	var running sync.WaitGroup
	defer running.Wait()
	for i, name := range attack.Floods() {
		a, err := attack.Find(name)
		if err != nil {
			return err
		}
		attacker := attack.Attacker{
			Server: server, Networks: target.Networks(), Random: newRandom(i), Size: floodSize, Hold: 5 * time.Second, Stats: &attack.Stats{},
		}
		running.Go(func() { attacker.Run(ctx, a, 0) })
	}
	return nil
}

// measureRSS starts a server and samples its resident memory under load.
func (o *measureOptions) measureRSS(ctx context.Context, binary string, out io.Writer, name string, load func(*target.Server) error) error {
	options, err := target.Known(ctx, binary, "--maxmemory", fmt.Sprintf("%dmb", o.maxMB))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "soak")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	server, err := target.Start(ctx, target.Spec{Binary: binary, Dir: dir, Args: options})
	if err != nil {
		return err
	}
	defer server.Kill()
	loaded := make(chan error, 1)
	go func() { loaded <- load(server) }()
	var largest int64
	for ticks := time.NewTicker(20 * time.Millisecond); ; {
		rss, err := server.RSS()
		if err != nil {
			return fmt.Errorf("%s: the server has ended: %w", name, err)
		}
		largest = max(largest, rss)
		select {
		case <-ticks.C:
			continue
		case err = <-loaded:
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		_, err = fmt.Fprintf(out, "| %s | %d MB | %.2f | %d MB |\n", name, largest>>20, float64(largest)/float64(o.maxMB<<20), rss>>20)
		return err
	}
}
