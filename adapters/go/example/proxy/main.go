// Proxy stands before a server with the shape of OpenAI's, and has its tokens and their cost counted by
// cellserver: by organisation, user and model, a day and a month.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	cellserver "cellserver/adapters/go"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	addr := flag.String("addr", "127.0.0.1:8000", "address to listen on")
	server := flag.String("cellserver", "127.0.0.1:6380", "address of cellserver")
	model := flag.String("model", "http://127.0.0.1:8001", "the model's server")
	keys := flag.String("keys", "keys.txt", "file of lines: secret organisation user")
	file := flag.String("journal", "holds.jsonl", "file of open holds")
	ttl := flag.Duration("ttl", time.Minute, "time of a hold, and in which the model has to answer or to go on")
	away := flag.String("away", "closed", "while cellserver is away: closed or local")
	timeout := flag.Duration("timeout", cellserver.DefaultTimeout, "of a call to cellserver")
	flag.Parse()

	if *away != "closed" && *away != "local" {
		return fmt.Errorf("-away %q: give closed or local", *away)
	}
	callers, err := readCallers(*keys)
	if err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", *addr)
	if err != nil {
		return err
	}
	j, open, err := openJournal(*file)
	if err != nil {
		return err
	}
	limiter := newLimiter(*server, *timeout, *away == "local")
	limiter.Note = j.note
	p := &proxy{limiter: limiter, journal: j, callers: callers, model: *model, ttl: *ttl}
	for _, e := range open {
		go p.resume(ctx, e)
	}
	return p.serve(ctx, listener)
}

// serve answers until ctx ends.
func (p *proxy) serve(ctx context.Context, on net.Listener) (err error) {
	web := &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(on) }()
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	// What is still open after these is settled by the next start.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err = cmp.Or(err, errors.Join(web.Shutdown(ctx), p.limiter.Close(ctx)))
	log.Printf("settlements at the end: %+v", p.limiter.Settlements())
	return err
}

func newLimiter(addr string, timeout time.Duration, local bool) *cellserver.Limiter {
	logging.Disable() // of each connection that fails; the limiter reports them, too
	options := cellserver.Options(addr)
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout = timeout, timeout, timeout
	options.PoolSize, options.PoolTimeout = 100, timeout
	limiter := &cellserver.Limiter{
		Client: redis.NewClient(options), Timeout: timeout, OnError: cellserver.Closed,
		// A tenth of a day's budgets: what each proxy may spend of a key while cellserver is away.
		LocalUnits: map[string]int64{
			"org-tokens": 200_000, "user-tokens": 20_000, "model-tokens": 100_000, "org-spend": cellserver.USD(2),
		},
	}
	if local {
		limiter.OnError = cellserver.Local
	}
	return limiter
}

// caller is who has a secret.
type caller struct{ org, user string }

func readCallers(file string) (map[string]caller, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	callers := map[string]caller{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		switch fields := strings.Fields(lines.Text()); {
		case len(fields) == 0 || strings.HasPrefix(fields[0], "#"):
		case len(fields) != 3 || strings.Contains(fields[1], "/") || !utf8.ValidString(lines.Text()):
			return nil, fmt.Errorf("%s: write secret organisation user, without a / in the organisation", file)
		default:
			callers[fields[0]] = caller{org: fields[1], user: fields[2]}
		}
	}
	return callers, lines.Err()
}
