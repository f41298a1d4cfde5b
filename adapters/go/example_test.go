package cellserver_test

import (
	"context"
	"log"
	"net/http"
	"net/netip"
	"time"

	"github.com/redis/go-redis/v9"

	cellserver "cellserver/adapters/go"
)

var (
	ctx     = context.Background()
	mux     = http.NewServeMux()
	limiter = &cellserver.Limiter{Client: redis.NewClient(cellserver.Options("127.0.0.1:6380"))}
)

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
