package servers

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cellserver/internal/store"
	"cellserver/internal/test/certtest"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
	"cellserver/internal/test/redistest"
)

// fails returns why a call fails at a server that answers, as a retry can end within an attempt.
func fails(t *testing.T, p *Pool, key string) (failed *Failed) {
	t.Helper()
	patience.Until(func() bool {
		failed = failsIn(t, p, key, 500*time.Millisecond)
		return failed.Reason != Timeout
	})
	return failed
}

func expectFails(t *testing.T, p *Pool, key string, reason store.Reason, executed Executed) {
	t.Helper()
	if failed := fails(t, p, key); failed.Reason != reason || failed.Executed != executed {
		t.Errorf("got %+v, want %s, executed %d", failed, reason, executed)
	}
}

// failsIn returns why a call that adds to a key fails.
func failsIn(t *testing.T, p *Pool, key string, d time.Duration) *Failed {
	t.Helper()
	failed := asFailed(p.Do(deadline(t, d), key, &Call{Script: add, Keys: []string{key}, Args: []any{1}}, 0))
	if failed == nil {
		t.Fatal("a call does not fail")
	}
	return failed
}

func TestSentinels(t *testing.T) {
	t.Parallel()
	skipShort(t)
	nodes := redistest.Sentinels(t)
	p := open(t, Config{URL: nodes.URL(), Timeout: time.Second})
	if p.Clustered() {
		t.Error("sentinels are a cluster")
	}
	awaitCall(t, p)
	s, err := p.Of(t.Context(), "a")
	if err != nil || s.Addr != "sentinel:mymaster" {
		t.Errorf("the server is %s, %v", s.Addr, err)
	}
	if err := p.ready(patient(t)); err != nil {
		t.Error(err)
	}
	nodes.Master.Kill()
	awaitCall(t, p) // it only reads, but before the promotion there is no other server
	ctx := patient(t)
	for {
		c := &Call{Script: add, Keys: []string{"a"}, Args: []any{1}}
		if p.Do(ctx, "a", c, 0) == nil {
			break
		}
		if !sleep(ctx, 10*time.Millisecond) {
			t.Fatal(c.Err)
		}
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	skipShort(t)
	master := redistest.Server(t, "--repl-diskless-sync-delay", "0")
	host, port, _ := strings.Cut(master.Addr, ":")
	p := open(t, Config{URL: "redis://" + master.Addr})
	s, _ := p.Of(t.Context(), "a")
	write := func(d time.Duration) *Call {
		c := &Call{Script: add, Keys: []string{"a"}, Args: []any{1}}
		p.Send(deadline(t, d), s, []*Call{c}, 1)
		return c
	}
	c := write(10 * time.Second)
	failed := asFailed(c.Err)
	if failed == nil || failed.Reason != Replicas || failed.Executed != Maybe || c.Reply != int64(1) || failed.Again() {
		t.Errorf("without a replica: %v, %+v", c.Reply, failed)
	}
	replica := redistest.Server(t, "--replicaof", host+" "+port)
	for ctx := patient(t); ; {
		if c = write(10 * time.Second); c.Err == nil || !sleep(ctx, time.Millisecond) {
			break
		}
	}
	want, err := master.Client().Get(t.Context(), "a").Int64()
	if c.Err != nil || c.Reply != want || err != nil {
		t.Errorf("with a replica: %v, %v; want %d, %v", c.Reply, c.Err, want, err)
	}
	c = &Call{Script: add, Keys: []string{"a"}, Args: []any{0}}
	err = p.Do(deadline(t, 10*time.Second), "a", c, 2)
	if asFailed(err) == nil || asFailed(err).Reason != Replicas || c.Reply != want {
		t.Errorf("with one replica of two: %v, %v", c.Reply, err)
	}
	if got, err := replica.Client().Get(t.Context(), "a").Int64(); err != nil || got != want {
		t.Errorf("the replica has %d, %v, want %d", got, err, want)
	}
	readOnly := open(t, Config{URL: "redis://" + replica.Addr})
	expectFails(t, readOnly, "a", ReadOnly, No)
	if failed := asFailed(readOnly.ready(patient(t))); failed == nil || failed.Reason != ReadOnly {
		t.Errorf("a replica is ready: %v", failed)
	}
}

func TestRealRefusals(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t, "--requirepass", "hunter2")
	client := server.Client()
	ctx := patient(t)
	for user, rules := range map[string][]string{
		"all":      {"on", ">hunter3", "~*", "+@all"},
		"noscript": {"on", ">hunter3", "~*", "+@all", "-evalsha"},
		"noload":   {"on", ">hunter3", "~*", "+@all", "-script"},
		"noread":   {"on", ">hunter3", "~other", "+@all"},
	} {
		if err := client.ACLSetUser(ctx, user, rules...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	var log processtest.Log
	for _, tt := range []struct {
		user string
		want store.Reason
	}{
		{"", Auth}, {":wrong-hunter@", Auth}, {"all:wrong-hunter@", Auth}, {"noscript:hunter3@", NoScripting},
		{"noload:hunter3@", NoScripting}, {"noread:hunter3@", Auth},
	} {
		p := open(t, Config{URL: "redis://" + tt.user + server.Addr, Log: slog.New(slog.NewTextHandler(&log, nil))})
		failed := fails(t, p, "a")
		if failed.Reason != tt.want || failed.Executed != No || strings.Contains(failed.Text, "hunter") {
			t.Errorf("%s gives %+v", tt.user, failed)
		}
		for range 2 * tripAfter {
			failed = fails(t, p, "a")
		}
		if strings.Contains(failed.Text+p.String(), "hunter") {
			t.Errorf("%s tells the password: %s", tt.user, failed.Text)
		}
	}
	if text := log.String(); strings.Contains(text, "hunter") || !strings.Contains(text, "WRONGPASS") {
		t.Errorf("the log is %s", text)
	}
	p := open(t, Config{URL: "redis://all:hunter3@" + server.Addr})
	awaitCall(t, p)
	if err := client.Set(ctx, "a", "text", 0).Err(); err != nil {
		t.Fatal(err)
	}
	expectFails(t, p, "a", Refused, Maybe)
	if err := client.LPush(ctx, "b", "x").Err(); err != nil {
		t.Fatal(err)
	}
	expectFails(t, p, "b", WrongType, No)
	client.ConfigSet(ctx, "maxmemory", "1")
	expectFails(t, p, "c", OutOfMemory, No)
	client.ConfigSet(ctx, "maxmemory", "0")
	client.ScriptFlush(ctx)
	if err := p.Do(ctx, "c", &Call{Script: add, Keys: []string{"c"}, Args: []any{1}}, 0); err != nil {
		t.Errorf("after SCRIPT FLUSH: %v", err)
	}
}

// TestCircuit: it opens while a server is away, is logged both ways, and closes when it is back.
func TestCircuit(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t)
	proxy := redistest.NewProxy(t, server.Addr)
	var log processtest.Log
	p := open(t, Config{
		URL: "redis://" + proxy.Addr, Timeout: 500 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	awaitCall(t, p)
	proxy.BlackHole()
	ctx := patient(t)
	for i := 0; ; i++ { // one key would prove little
		failed := failsIn(t, p, strconv.Itoa(i), 500*time.Millisecond)
		if failed.Reason == CircuitOpen {
			if failed.Executed != No || !strings.Contains(failed.Text, "no answer in time") {
				t.Errorf("an open circuit gives %+v", failed)
			}
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("the last failure is %+v", failed)
		}
	}
	proxy.Heal()
	awaitCall(t, p)
	if err := p.ready(patient(t)); err != nil {
		t.Error(err)
	}
	away, back := strings.Count(log.String(), "does not answer"), strings.Count(log.String(), "answers again")
	if away == 0 || away != back {
		t.Errorf("%d lines say that it is away, and %d that it is back", away, back)
	}
	if stats := p.Stats()[0]; stats.Circuit != "closed" || stats.Error != "" {
		t.Errorf("the statistics are %+v", stats)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := certtest.NewCA(t)
	cert, key := ca.Issue(t, "server")
	file := func(name string, contents []byte) string {
		path := filepath.Join(dir, name)
		certtest.Write(t, path, contents)
		return path
	}
	caFile, certFile, keyFile := file("ca.pem", ca.PEM), file("cert.pem", cert), file("key.pem", key)
	addr := processtest.FreeAddr(t)
	_, port, _ := strings.Cut(addr, ":")
	redistest.Server(t, "--tls-port", port, "--tls-ca-cert-file", caFile, "--tls-cert-file", certFile, "--tls-key-file", keyFile)
	awaitCall(t, open(t, Config{URL: "rediss://" + addr, CAFile: caFile, CertFile: certFile, KeyFile: keyFile}))
	for what, config := range map[string]Config{
		"unknown authority":  {URL: "rediss://" + addr, CertFile: certFile, KeyFile: keyFile},
		"no certificate":     {URL: "rediss://" + addr, CAFile: caFile},
		"not for its name":   {URL: "rediss://" + addr, CAFile: caFile, CertFile: certFile, KeyFile: keyFile, ServerName: "other"},
		"without encryption": {URL: "redis://" + addr},
	} {
		if failed := fails(t, open(t, config), "a"); failed.Reason != Network {
			t.Errorf("%s gives %+v", what, failed)
		}
	}
	for _, config := range []Config{
		{URL: "redis://a", CAFile: caFile}, {URL: "rediss://a", CAFile: keyFile}, {URL: "rediss://a", CAFile: caFile + "x"},
		{URL: "rediss://a", CertFile: certFile},
	} {
		if _, err := Open(config); err == nil {
			t.Errorf("%+v is accepted", config)
		}
	}
}

// TestBoundedWaiting: callers of a hanging server wait no longer than their context, and leave nothing
// behind.
func TestBoundedWaiting(t *testing.T) {
	t.Parallel()
	f := startFake(t, &fake{answer: echo, readMax: -1, writeMax: 0, hang: true})
	p := open(t, Config{URL: "redis://" + f.addr, Timeout: 30 * time.Millisecond, PoolSize: 2})
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[store.Reason]int{}
	for range 50 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			failed := asFailed(p.Do(ctx, "k", &Call{Script: nothing, Args: []any{"0"}}, 0))
			if failed == nil || failed.Executed != No {
				t.Errorf("a call without an answer to HELLO gives %+v", failed)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			seen[failed.Reason]++
		})
	}
	wg.Wait()
	for reason := range seen {
		if !slices.Contains([]store.Reason{Timeout, QueueFull, CircuitOpen}, reason) {
			t.Errorf("failures are %v", seen)
		}
	}
	if n := p.Stats()[0].Conns; n > 2 {
		t.Errorf("%d connections are open", n)
	}
}
