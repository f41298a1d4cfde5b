package cellserver_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	cellserver "cellserver/adapters/go"
)

var (
	ctx     = context.Background()
	mux     = http.NewServeMux()
	limiter = &cellserver.Limiter{Client: redis.NewClient(cellserver.Options("127.0.0.1:6380"))}
)

func ask(string) (tokens int64, dollars float64, err error) { return 3, 0.0001, nil }

func chunks(yield func(string, error) bool) { yield("yes", nil) }

func answer(string) (tokens int64) { return int64(len("yes")) }

func ExampleLimiter_Allow() {
	logins := &cellserver.Limiter{Client: redis.NewClient(cellserver.Options("127.0.0.1:6380")), OnError: cellserver.Closed}
	r, err := logins.Allow(ctx, "login-account", "192.0.2.1 laoqian", 1)
	switch {
	case err != nil:
		log.Print("refused, without a decision: ", err)
	case !r.Allowed:
		log.Printf("try again in %s", r.RetryAfter)
	}
}

func ExampleLimiter_Wait() {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := limiter.Wait(ctx, "mails", "all", 1); err != nil {
		log.Print("not sent: ", err)
	}
}

func ExampleLimiter_Reserve() {
	perMinute := cellserver.Funnel{MaxBurst: 99_999, Count: 100_000, Period: time.Minute}
	r, err := limiter.Reserve(ctx, "tokens:acme", perMinute, 4_000, 2*time.Minute)
	if err == nil && r.Allowed {
		used := answer("a question")
		err = r.Commit(ctx, used)
	}
	if err != nil {
		log.Print(err)
	}
}

func ExampleLimiter_Hold() {
	h, err := limiter.Hold(ctx, 2*time.Minute,
		cellserver.Use{Limit: "org-tokens", Key: "acme", Units: 4_000},
		cellserver.Use{Limit: "user-tokens", Key: "acme/ann", Units: 4_000},
		cellserver.Use{Limit: "org-spend", Key: "acme", Units: cellserver.USD(0.02)})
	if err != nil {
		log.Print("refused, without a decision: ", err)
		return
	}
	defer h.Close()
	for _, r := range h.Results {
		switch {
		case !r.Allowed:
			log.Printf("%s: %d of %d units left, try again in %s", r.Name, r.Remaining, r.Limit, r.RetryAfter)
		case r.Near(0.8):
			log.Printf("%s: 80 %% are used", r.Name)
		}
	}
	if !h.Allowed {
		return
	}
	tokens, dollars, err := ask("a question")
	if err != nil {
		err = h.Cancel(ctx)
	} else {
		err = h.Settle(ctx, tokens, tokens, cellserver.USD(dollars))
	}
	if err != nil {
		log.Print("not settled: ", err)
	}
}

func ExampleStream() {
	h, err := limiter.Hold(ctx, time.Minute, cellserver.Use{Limit: "user-tokens", Key: "acme/ann", Units: 4_000})
	if err != nil || !h.Allowed {
		return
	}
	defer h.Close()
	words := func(chunk string) []int64 { return []int64{int64(len(strings.Fields(chunk)))} }
	for chunk, err := range cellserver.Stream(ctx, h, chunks, words) {
		if err != nil {
			break
		}
		fmt.Print(chunk)
	}
}

func ExampleLimiter_Settlements() {
	limiter := &cellserver.Limiter{
		Client:     redis.NewClient(cellserver.Options("127.0.0.1:6380")),
		OnError:    cellserver.Local,
		LocalUnits: map[string]int64{"org-tokens": 100_000, "user-tokens": 10_000, "org-spend": cellserver.USD(5)},
	}
	mux.HandleFunc("/settlements", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "%+v\n", limiter.Settlements()) // {Waiting:0 GivenUp:0 Lost:0}
	})
	// at the end, when no hold is open
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := limiter.Close(ctx); err != nil {
		log.Print(err)
	}
}

func ExampleMiddleware() {
	perVisitor := cellserver.Middleware{
		Limiter: limiter, Limit: "visitor",
		Key: cellserver.ByAddress(netip.MustParsePrefix("10.0.0.0/8")),
	}
	perKey := cellserver.Middleware{Limiter: limiter, Limit: "api-key", Key: cellserver.ByHeader("X-Api-Key")}
	handler := perVisitor.Handler(perKey.Handler(mux))
	log.Print(http.ListenAndServe("127.0.0.1:8000", handler))
}

func ExampleFailoverOptions() {
	options := cellserver.FailoverOptions("cellserver", "10.0.0.1:26379", "10.0.0.2:26379", "10.0.0.3:26379")
	options.Password = "secret"
	limiter := &cellserver.Limiter{Client: redis.NewFailoverClient(options), OnError: cellserver.Closed}
	log.Print(limiter.Allow(ctx, "login", "laoqian", 1))
}

func ExampleLimiter_local() {
	limiter := &cellserver.Limiter{
		Client:   redis.NewClient(cellserver.Options("127.0.0.1:6380")),
		OnError:  cellserver.Local,
		Fallback: map[string]cellserver.Funnel{"visitor": {MaxBurst: 19, Count: 600, Period: time.Minute}},
	}
	log.Print(limiter.Allow(ctx, "visitor", "192.0.2.1", 1))
}
