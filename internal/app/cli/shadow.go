package cli

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"cellserver/internal/app/usage"
	"cellserver/internal/base/certs"
	"cellserver/internal/base/flagvalue"
	"cellserver/internal/migrate/shadow"
)

const shadowHelp = `Follow the CL.THROTTLE calls of a running redis-cell, decide the same calls here, and print every difference.

The Redis is only read: MONITOR shows each call with its time, and after it GET reads the key, whose value is when its funnel is
empty (its TAT), in nanoseconds. From that and the call every integer of the reply follows. The GETs appear in
MONITOR's stream, so it is known which calls a value reflects, whatever other clients do; no client notices. The user needs
+monitor +get +select +ping, and the keys.

A key's TAT after its calls is compared with what this server's arithmetic makes of the TAT before them. The two must be
equal to the nanosecond, except for an empty funnel: there the TAT depends on the clock, which the Redis reads some
microseconds before or after the time that MONITOR shows, and may differ by --tolerance. The Redis's state is then adopted,
so a difference is reported once.

Not compared are the first call on each key (only checked for being possible), replies that contradict the state, calls with
errors, and limiters of other kinds. Other writes to a key, such as DEL, are noticed. MONITOR costs a busy Redis part of its
throughput: begin with --for 10s.

Each node of a Redis Cluster shows only its own calls: follow each primary. A cellserver can be followed as well if it serves
all clients from one event loop (--io-threads 1, without TLS) and they use neither scripts nor transactions; otherwise it may
show calls in another order than it decides them.

"Not compared" counts calls on keys that were
not read: the end came first, --rate is too low for the number of keys, or a key is longer than 1 MiB.`

const shadowExample = `  cellserver shadow --from redis.example:6379 --for 10m
  cellserver shadow --from redis://watcher@redis.example:6379 --password-file password --burst-is-capacity --json`

const maxShadowRate = 1_000_000_000

type shadowCall struct {
	from                                string
	account                             account
	tls                                 bool
	tlsCA, tlsCert, tlsKey, tlsHostname string
	wholeBursts, json                   bool
	duration                            time.Duration
	options                             shadow.Options
}

func shadowCommand() *cobra.Command {
	c := &shadowCall{}
	cmd := &cobra.Command{
		Use: "shadow [flags] --from HOST:PORT", Short: "compare decisions with a running redis-cell", Long: shadowHelp, Example: shadowExample,
		Args: usage.NoArguments, Annotations: usage.Exits("no differences in what was compared", "differences, nothing compared, or an error"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.check(cmd.ErrOrStderr()); err != nil {
				return usage.Errorf("shadow: %w", err)
			}
			return c.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&c.from, "from", "", "`host:port` of the Redis, or a URL, redis://user@host:port or rediss://")
	flags.StringVar(&c.account.user, "user", "", "its `user`, instead of the URL's (default the default user)")
	c.account.define(flags, "password-file", "the Redis", passwordVariable)
	flagvalue.BoolVar(flags, &c.tls, "tls", "use TLS")
	flags.StringVar(&c.tlsCA, "tls-ca", "", "PEM `file` with the authorities of the server's certificate (default the system's)")
	flags.StringVar(&c.tlsCert, "tls-client-cert", "", "PEM `file` with a client certificate, if the server requires one")
	flags.StringVar(&c.tlsKey, "tls-client-key", "", "PEM `file` with that certificate's private key")
	flags.StringVar(&c.tlsHostname, "tls-server-name", "", "`name` in the server's certificate (default the host)")
	flagvalue.DurationVar(flags, &c.duration, "for", 0, 0, math.MaxInt64, "`time` to follow; 0 until Ctrl-C")
	flagvalue.BoolVar(flags, &c.wholeBursts, "burst-is-capacity", "read max_burst as the whole capacity, as a cellserver with this flag does")
	flagvalue.UnitDurationVar(flags, &c.options.Tolerance, "tolerance", 20*time.Millisecond, 0, time.Minute, "largest `time` between the Redis's clock and MONITOR's times")
	flagvalue.NumberVar(flags, &c.options.Rate, "rate", 0, 0, maxShadowRate, "most `keys` to read per second; 0 for no limit")
	flagvalue.BoolVar(flags, &c.json, "json", "print differences and totals as JSON, one object per line")
	return cmd
}

// check validates the flags and sets the options derived from them.
func (c *shadowCall) check(stderr io.Writer) error {
	o := &c.options
	o.Reading = reading(c.wholeBursts)
	switch {
	case c.from == "":
		return errors.New("--from is missing: give the host:port of a Redis; see cellserver shadow --help")
	case (c.tlsCert == "") != (c.tlsKey == ""):
		return errors.New("--tls-client-cert and --tls-client-key require each other; set both")
	}
	if err := c.readAddress(stderr); err != nil {
		return err
	}
	if o.Source.TLS == nil && !c.tls {
		if c.tlsCA+c.tlsCert+c.tlsHostname != "" {
			return errors.New("TLS flags require --tls, or a URL that begins with rediss://")
		}
		return nil
	}
	return c.readTLS()
}

func (c *shadowCall) readAddress(stderr io.Writer) error {
	source := &c.options.Source
	// c.from is not shown: it may contain a password.
	wrong := errors.New("--from: want host:port, such as 127.0.0.1:6379, or a URL such as redis://user@host:port, or rediss:// for TLS")
	if !isURL(c.from) && !flagvalue.IsAddress(c.from) {
		return wrong
	}
	url, err := c.account.addTo(urlOf(c.from), "--from", stderr)
	if err != nil {
		return err
	}
	o, err := redis.ParseURL(url)
	if err != nil || o.Network != "tcp" {
		return wrong
	}
	source.Addr, source.User, source.Password, source.TLS = o.Addr, o.Username, o.Password, o.TLSConfig
	return nil
}

func (c *shadowCall) readTLS() error {
	host, _, _ := net.SplitHostPort(c.options.Source.Addr)
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if c.tlsHostname != "" {
		config.ServerName = c.tlsHostname
	}
	if c.tlsCA != "" {
		var err error
		if config.RootCAs, err = certs.Authorities(c.tlsCA); err != nil {
			return fmt.Errorf("--tls-ca: %w", err)
		}
	}
	if c.tlsCert != "" {
		var err error
		if config.Certificates, err = certs.Pair(c.tlsCert, c.tlsKey); err != nil {
			return fmt.Errorf("--tls-client-cert: %w", err)
		}
	}
	c.options.Source.TLS = config
	return nil
}

func (c *shadowCall) run(ctx context.Context, stdout, stderr io.Writer) error {
	out := &shadowPrinter{out: stdout, asJSON: c.json}
	followed := false
	c.options.Following = func() {
		followed = true
		_, _ = fmt.Fprintf(stderr, "shadow: following %s\n", c.options.Source.Addr)
	}
	if c.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.duration)
		defer cancel()
	}
	line := &progressLine{out: stderr}
	if isTerminal(stderr) {
		c.options.Progress = func(s shadow.Summary) {
			if line.isDue(time.Now()) {
				line.show(counted(s.Calls, "call") + ", " + counted(s.Different, "difference"))
			}
		}
	}
	c.options.Report = func(d shadow.Difference) {
		line.clear()
		out.difference(d)
	}
	summary, err := shadow.Run(ctx, c.options)
	line.clear()
	if followed {
		out.summary(&summary)
	}
	switch {
	case err != nil:
		return err
	case out.err != nil:
		return fmt.Errorf("shadow: %w", out.err)
	case summary.Different > 0:
		return errors.New("shadow: " + counted(summary.Different, "difference"))
	}
	if why := summary.Nothing(); why != "" {
		return errors.New("shadow: nothing was compared: " + why)
	}
	return nil
}

// shadowPrinter prints differences and totals as text or JSON.
type shadowPrinter struct {
	out    io.Writer
	asJSON bool
	err    error
}

func (p *shadowPrinter) difference(d shadow.Difference) {
	if p.asJSON {
		p.object(map[string]any{"difference": d})
		return
	}
	p.note(fmt.Fprintln(p.out, d.String()))
}

func (p *shadowPrinter) summary(s *shadow.Summary) {
	if p.asJSON {
		p.object(map[string]any{"summary": s})
		return
	}
	w := tabwriter.NewWriter(p.out, 0, 8, 2, ' ', 0)
	for _, row := range []struct {
		name  string
		value int64
		hide  bool
	}{
		{"calls", s.Calls, false},
		{"allowed here", s.Allowed, false},
		{"limited here", s.Limited, false},
		{"either here", s.Either, false},
		{"errors here", s.Refused, s.Refused == 0},
		{"compared", s.Compared, false},
		{"single calls", s.Single, false},
		{"only checked for being possible", s.Unknown, false},
		{"not compared", s.Missed, s.Missed == 0},
		{"of other limiters", s.OtherKinds, s.OtherKinds == 0},
		{"keys that hold no TAT", s.Unread, s.Unread == 0},
		{"reads", s.Reads, false},
		{"differences", s.Different, s.Compared+s.Different == 0},
	} {
		if !row.hide {
			p.note(fmt.Fprintf(w, "%s\t%d\n", row.name, row.value))
		}
	}
	if s.ClockReads > 0 {
		p.note(fmt.Fprintf(w, "clock offset\t%s to %s, in %d calls\n", s.ClockLeast, s.ClockMost, s.ClockReads))
	}
	p.note(fmt.Fprintf(w, "time\t%s\n", s.Took.Round(time.Millisecond)))
	p.note(0, w.Flush())
}

func (p *shadowPrinter) object(v any) { p.note(0, json.NewEncoder(p.out).Encode(v)) }

func (p *shadowPrinter) note(_ int, err error) {
	if p.err == nil {
		p.err = err
	}
}
