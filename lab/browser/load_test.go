package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const hostile = "<img src=x onerror=alert(1)>"

// TestUnderLoad checks a real server with real clients: curves move, and inspecting a key does not change it.
func TestUnderLoad(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds the server and takes half a minute")
	}
	s, err := startServer(t.Context(), t.Output(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	loadCtx, endLoad := context.WithCancel(t.Context())
	loaded := make(chan error, 2)
	go func() { loaded <- load(loadCtx, s.redis) }()
	go func() { loaded <- loadHostileKey(loadCtx, s.redis) }()
	t.Cleanup(func() {
		endLoad()
		if err := errors.Join(<-loaded, <-loaded); err != nil {
			t.Error(err)
		}
	})
	rdb := newClient(s.redis, 0)
	t.Cleanup(func() { _ = rdb.Close() })
	for range 4 {
		if err := rdb.Do(t.Context(), "CL.THROTTLE", hostile, 9, 1, 3600, 1).Err(); err != nil {
			t.Fatal(err)
		}
	}
	v := visit(t, s.page)
	v.open("?lang=en")
	const curve = `document.querySelector("#chart-decisions .stroke.first")?.getAttribute("d")`
	v.until(`(` + curve + ` ?? "").split("L").length > 2`)
	before := eval[string](v, curve)
	v.until(curve + ` !== ` + quoted(before))
	if now := v.text("#now"); !strings.Contains(now, "Allowed per second\n") || strings.Contains(now, "Allowed per second\n0\n") {
		t.Errorf("under load the page says %q", now)
	}

	const hottest = "1:" + hostile + ", 0:user:0, 0:user:1, 0:user:2"
	for _, order := range []string{"", "&top=limited"} {
		v.open("?lang=en" + order)
		v.until(`[...document.querySelectorAll("#top tbody tr")].slice(0, 4).map((row) => row.dataset.k).join(", ") === ` + quoted(hottest))
	}

	ttl := rdb.PTTL(t.Context(), hostile).Val()
	v.find(`cl.throttle "` + hostile + `" 9 1 3600`)
	if got := v.opened(); got != hostile {
		t.Errorf("the drawer is of %q", got)
	}
	v.until(`document.querySelector("#drawer .vessel") !== null`)
	drawer := v.text("#drawer")
	for _, want := range []string{"✓ Allowed: ", "10 at once, 1 per hour", "of 10 units", "1 every 1 h", "0 10 5 -1", "Also in database 1"} {
		if !strings.Contains(drawer, want) {
			t.Errorf("the drawer %q lacks %q", drawer, want)
		}
	}
	v.click("#drawer p > a.in")
	v.until(`document.querySelector("#drawer .verdict.limited")?.textContent.startsWith("✕ Limited; allowed in ") && document.querySelector("#drawer .course") !== null`)
	if got := v.text("#drawer"); !strings.Contains(got, "By the limit of its last call.") {
		t.Errorf("the drawer of the other database is %q", got)
	}
	if eval[int](v, `document.querySelectorAll("img").length`) != 0 {
		t.Error("the key became an image")
	}
	if after := rdb.PTTL(t.Context(), hostile).Val(); after > ttl || after <= 0 {
		t.Errorf("inspecting the key changed its TTL from %s to %s", ttl, after)
	}
}

// loadHostileKey makes the hostile key of database 1 the hottest, until ctx is done.
func loadHostileKey(ctx context.Context, addr string) error {
	rdb := newClient(addr, 1)
	defer func() { _ = rdb.Close() }()
	return repeat(ctx, rdb, func(pipe redis.Pipeliner) (pause time.Duration) {
		for range 100 {
			pipe.Do(ctx, "CL.THROTTLE", hostile, 9, 1, 3600, 1)
		}
		return 20 * time.Millisecond
	})
}

// quoted returns a JavaScript string literal.
func quoted(s string) string {
	b, _ := json.Marshal(s) // a string cannot fail
	return string(b)
}
