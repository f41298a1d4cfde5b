package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"cellserver/bench/internal/load"
	"cellserver/bench/internal/peer"
)

// loadOptions holds the values of the flags of bench load.
type loadOptions struct {
	addr, command string
	protocol      string
	config        load.Config
	plan          load.Plan
	warmUp        time.Duration
}

func runLoad(ctx context.Context, args []string, stdout, _ io.Writer) error {
	o, err := parseLoad(ctx, args, stdout)
	if err != nil {
		return err
	}
	g, err := load.Open(o.config)
	if err != nil {
		return err
	}
	defer g.Close()
	if o.warmUp > 0 {
		if _, err := g.Run(ctx, load.Plan{Duration: o.warmUp, Rate: o.plan.Rate}); err != nil {
			return err
		}
	}
	r, err := g.Run(ctx, o.plan)
	if err != nil {
		return err
	}
	return printLoad(stdout, o, r)
}

func parseLoad(ctx context.Context, args []string, stdout io.Writer) (*loadOptions, error) {
	o := &loadOptions{}
	fs := newFlags("load", "Puts load on a server that runs. An error reply fails it.", stdout)
	fs.StringVar(&o.addr, "addr", "127.0.0.1:6380", "`host:port` of the server")
	fs.StringVar(&o.protocol, "protocol", protocolRESP, "`protocol`: resp, http (GET of a path) or envoy (ShouldRateLimit for the limits of bench run)")
	fs.StringVar(&o.command, "command", "CL.THROTTLE k:{key} 15 30 60 1", "`words` to send, or the path for http; {key} is replaced by twelve digits")
	fs.IntVarP(&o.config.Conns, "connections", "c", 50, "number of connections")
	fs.IntVarP(&o.config.Pipeline, "pipeline", "P", 1, "requests that a connection sends at once")
	fs.IntVar(&o.config.Threads, "threads", 1, "threads of the generator")
	fs.IntVarP(&o.plan.Requests, "requests", "n", 0, "total number of requests, instead of --duration")
	fs.DurationVarP(&o.plan.Duration, "duration", "d", 5*time.Second, "how long to send")
	fs.DurationVar(&o.warmUp, "warm-up", 0, "how long to send before measuring")
	fs.Float64Var(&o.plan.Rate, "rate", 0, "requests per second, sent even if the server does not keep up; 0 for as fast as replies arrive")
	fs.IntVar(&o.config.Keys.Count, "keys", 100_000, "number of different keys")
	fs.StringVar(&o.config.Keys.Dist, "dist", load.Uniform, "`distribution` of keys: uniform, zipf, hot (one key) or sequential")
	fs.Float64Var(&o.config.Keys.Skew, "zipf-s", load.DefaultSkew, "zipf's `s`, above 1")
	fs.DurationVar(&o.config.Patience, "patience", 10*time.Second, "how long the server may send no reply")
	if err := parse(fs, args); err != nil {
		return nil, err
	}
	if o.plan.Requests > 0 {
		o.plan.Duration = 0
	}
	var err error
	if o.config.Command, err = o.parseCommand(); err != nil {
		return nil, usageError{err}
	}
	o.config.Addr, err = resolve(ctx, o.addr)
	return o, err
}

// Protocols of bench load:
const (
	protocolRESP  = "resp"
	protocolHTTP  = "http"
	protocolEnvoy = "envoy"
)

func (o *loadOptions) parseCommand() (load.Command, error) {
	switch o.protocol {
	case protocolRESP:
		c, err := load.ParseCommand(o.command)
		return c.LimitedBy('1'), err
	case protocolHTTP:
		return peer.CheckAt(o.command)
	case protocolEnvoy:
		return peer.ShouldRateLimit(), nil
	default:
		return load.Command{}, fmt.Errorf("--protocol: unknown %q; choose resp, http or envoy", o.protocol)
	}
}

func resolve(ctx context.Context, addr string) (netip.AddrPort, error) {
	host, portName, err := net.SplitHostPort(addr)
	if err != nil {
		return netip.AddrPort{}, usageError{fmt.Errorf("--addr: %w; give host:port", err)}
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", portName)
	if err != nil {
		return netip.AddrPort{}, usageError{fmt.Errorf("--addr: %w", err)}
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, usageError{fmt.Errorf("--addr: %w", err)}
	}
	return netip.AddrPortFrom(ips[0].Unmap(), uint16(port)), nil
}

func printLoad(w io.Writer, o *loadOptions, r *load.Result) error {
	at := func(quantile float64) time.Duration { return time.Duration(r.Latency.ValueAtQuantile(quantile)) }
	_, err := fmt.Fprintf(w, `command       %s
requests      %d
elapsed       %s
rate          %.0f/s
limited        %.2f %%
latency       p50 %s, p99 %s, p99.9 %s, max %s
generator     %.0f ns of CPU time a request
`, o.config.Command, r.Requests, r.Elapsed.Round(time.Millisecond), r.Rate(),
		100*float64(r.Limited)/float64(max(r.Requests, 1)), at(50), at(99), at(99.9), time.Duration(r.Latency.Max()),
		float64(r.OwnCPU)/float64(max(r.Requests, 1)))
	if err != nil || o.plan.Rate == 0 {
		return err
	}
	_, err = fmt.Fprintf(w, "sent late     p99 %s, max %s\n", time.Duration(r.Lag.ValueAtQuantile(99)), time.Duration(r.Lag.Max()))
	return err
}
