package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
	"cellserver/internal/store/rdb"
	"cellserver/internal/test/redistest"
)

func open(t *testing.T, client *redis.Client) *Server {
	t.Helper()
	s, err := Open(t.Context(), "unix://"+client.Options().Addr, "a file")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// throttled makes a key as redis-cell does: a decimal TAT that expires at its time.
func throttled(t *testing.T, client *redis.Client, key string, left time.Duration) (tatNs int64) {
	t.Helper()
	tatNs = time.Now().Add(left).UnixNano()
	if err := client.SetArgs(t.Context(), key, tatNs, redis.SetArgs{ExpireAt: time.Unix(0, tatNs)}).Err(); err != nil {
		t.Fatal(err)
	}
	return tatNs
}

func TestDatabaseOfURL(t *testing.T) {
	for text, want := range map[string]int{
		"redis://h": -1, "redis://:p@h:1/": -1, "redis://u:p%2F3@h/7": 7, "rediss://h?skip_verify=true": -1, "redis://h?db=3": 3,
		"unix:///tmp/socket": -1, "unix:///tmp/socket?db=0": 0,
	} {
		s, err := Open(t.Context(), text, "a file")
		if err != nil {
			t.Fatal(err)
		}
		if db, ok := s.NamesDB(); ok != (want >= 0) || ok && db != want {
			t.Errorf("%s: %d, %t", text, db, ok)
		}
		s.Close()
	}
}

// TestUnknownCommand: no Redis knows the commands of CL.
func TestUnknownCommand(t *testing.T) {
	s := &Server{name: "h:1"}
	for text, want := range map[string]string{
		"ERR unknown command 'CL.TOP', with args beginning with: 'a'":   "h:1: %s; it must be a cellserver that knows the command",
		"ERR unknown command `CL.LIMIT`, with args beginning with: 'a'": "h:1: %s; it must be a cellserver that knows the command",
		"ERR unknown command 'RESTORE', with args beginning with: 'a'":  "h:1: %s; it must be a cellserver that knows the command, or a Redis",
	} {
		if got := s.explain(errors.New(text)).Error(); got != fmt.Sprintf(want, text) {
			t.Errorf("got %q", got)
		}
	}
}

func TestLimiterState(t *testing.T) {
	const now = 1_700_000_000_000_000_000
	for _, tt := range []struct {
		text string
		ttl  time.Duration
		err  error
		want string
	}{
		{"1700000060000000000", 60 * time.Second, nil, ""},
		{"1700000060000000000", 61999 * time.Millisecond, nil, ""},
		{"1700000060000000000", 57999 * time.Millisecond, nil, otherTTL}, // read within a millisecond
		{"1700000060000000000", 62001 * time.Millisecond, nil, otherTTL},
		{"1700000060000000000", -1, nil, noExpiry},
		{"1699999999999999999", 1 * time.Millisecond, nil, ""},
		{"9223372036854775807", time.Duration(1<<63 - 1 - now), nil, ""},
		{"9223372036854775808", time.Hour, nil, notTAT},
		{"+1700000060000000000", 60 * time.Second, nil, notTAT},
		{"01700000060000000000", 60 * time.Second, nil, notTAT},
		{"-1", time.Second, nil, notTAT},
		{"", time.Second, nil, notTAT},
		{"1.7e18", 60 * time.Second, nil, notTAT},
		{"1700000060000000000 ", 60 * time.Second, nil, notTAT},
		{"", time.Second, errors.New("WRONGTYPE"), notString},
	} {
		state, got := value{text: tt.text, ttl: tt.ttl, err: tt.err}.limiterState(now, now+1000)
		if got != tt.want || got == "" && strconv.FormatInt(state.ExpiresNs, 10) != tt.text {
			t.Errorf("%q, %d ns: got %d, %q, want %q", tt.text, tt.ttl, state.ExpiresNs, got, tt.want)
		}
	}
}

// TestCellserversOfBoth: an earlier one dumps a funnel as a decimal and takes it by SET; a later one keeps
// values.
func TestCellserversOfBoth(t *testing.T) {
	const nowNs, atNs = int64(1_700_000_000_000_000_000), int64(1_700_000_060_000_000_001)
	codec := rdb.NewCodec()
	funnel, counter := limiter.State{ExpiresNs: atNs}, limiter.ValueOf([]byte("1700000060000000001"), limiter.NeverNs)
	earlier := Server{codec: codec, reads: byDump, isCellserver: true}
	later := earlier
	later.keepsValues = true
	lasting := limiter.ValueOf([]byte("hello"), atNs)
	for _, tt := range []struct {
		s      *Server
		dumped *limiter.State
		ttl    time.Duration
		want   limiter.State
	}{
		{&earlier, &counter, 0, funnel}, {&later, &counter, -1, counter}, {&later, &funnel, -1, funnel},
		{&later, &lasting, time.Duration(atNs), lasting},
	} {
		v := value{text: string(codec.Append(nil, tt.dumped)), ttl: tt.ttl}
		tt.s.readDump(&v)
		if got, ok := v.state(); !ok || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%+v is read as %+v, %t, want %+v", tt.dumped, got, ok, tt.want)
		}
	}
	for _, tt := range []struct {
		s     *Server
		state *limiter.State
		takes bool
		want  string
	}{
		{&Server{}, &funnel, true, "SET k 1700000060000000001 PX 60001"}, {&earlier, &funnel, true, "SET k 1700000060000000001 PX 60001"},
		{&Server{}, &counter, true, "SET k 1700000060000000001"}, {&Server{}, &lasting, true, "SET k hello PXAT 1700000060001"},
		{&earlier, &lasting, false, ""}, {&later, &funnel, true, "RESTORE k 1700000060001 DUMP REPLACE ABSTTL"},
		{&later, &counter, true, "RESTORE k 0 DUMP REPLACE ABSTTL"}, {&later, &lasting, true, "RESTORE k 1700000060001 DUMP REPLACE ABSTTL"},
	} {
		e := Entry{Key: store.Key{Name: []byte("k")}, State: *tt.state}
		if takes := tt.s.canHold(&e, nowNs); takes != tt.takes {
			t.Errorf("%+v takes %+v: %t", tt.s, tt.state, takes)
		}
		if !tt.takes {
			continue
		}
		words := tt.s.write(&e, nowNs)
		if words[0] == "RESTORE" && bytes.Equal(words[3].([]byte), codec.Append(nil, tt.state)) {
			words[3] = "DUMP"
		}
		var text []string
		for _, word := range words {
			if b, ok := word.([]byte); ok {
				word = string(b)
			}
			text = append(text, fmt.Sprint(word))
		}
		if got := strings.Join(text, " "); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

// TestStays: of two values the later one, the higher counter, or the target's; and none beside a limiter.
func TestStays(t *testing.T) {
	const at, ms = int64(1_700_000_000_000_000_000), int64(time.Millisecond)
	state := func(text string, ns int64) *limiter.State {
		s := limiter.ValueOf([]byte(text), ns)
		return &s
	}
	for i, tt := range []struct {
		held, other *limiter.State
		stays, ok   bool
	}{
		{state("5", at), state("5", at), true, true}, {state("5", at), state("6", at), false, true}, {state("7", at), state("6", at+9*ms), true, true},
		{state("7", at), state("6", at+11*ms), false, true}, {state("5", at+11*ms), state("6", at), true, true},
		{state("5", limiter.NeverNs), state("6", at), true, true}, {state("a", limiter.NeverNs), state("b", limiter.NeverNs), true, true},
		{state("a", at), state("b", limiter.NeverNs), false, true}, {state("5", at), &limiter.State{ExpiresNs: at}, false, false},
		{&limiter.State{ExpiresNs: at}, state("5", at), false, false},
	} {
		if stays, ok := isKept(tt.held, tt.other); stays != tt.stays || ok != tt.ok {
			t.Errorf("row %d: %t, %t", i, stays, ok)
		}
	}
}

// TestImport takes limiters from all databases, shifted by the clocks' difference; later states of the target
// stay.
func TestImport(t *testing.T) {
	from, into := redistest.Start(t), redistest.Start(t)
	ctx := t.Context()
	want := map[string]int64{}
	for i := range 2500 {
		key := fmt.Sprintf("user:%d", i)
		want[key] = throttled(t, from, key, time.Hour+time.Duration(i)*time.Second) + int64(time.Hour)
	}
	for _, set := range [][]any{
		{"SET", "text", "hello", "EX", 100}, {"SET", "for ever", time.Now().Add(time.Hour).UnixNano()}, {"SET", "", "", "EX", 100},
		{"SET", "number", time.Now().Add(time.Hour).UnixNano(), "EX", 100}, {"LPUSH", "list", "a"}, {"SET", "long", strings.Repeat("1", 1<<20), "EX", 100},
	} {
		if err := from.Do(ctx, set...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	other := redis.NewClient(&redis.Options{Network: "unix", Addr: from.Options().Addr, DB: 9})
	defer func() { _ = other.Close() }()
	inOther := throttled(t, other, "\x00\xff", time.Hour) + int64(time.Hour)
	later := time.Now().Add(5 * time.Hour).UnixNano()
	for key, value := range map[string]any{"user:7": later, "user:8": "something else", "user:9": 5} {
		if err := into.Set(ctx, key, value, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	want["user:7"] = later
	delete(want, "user:8")
	target := open(t, into)
	target.clock = clock{time.Now().Add(time.Hour).UnixNano(), time.Now(), 1}
	source := open(t, from)
	source.clock = clock{time.Now().UnixNano(), time.Now(), 1}
	im := Import{From: source, Into: target, Match: "*", DB: -1, Progress: func(Counts, int64) {}}
	counts, err := im.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	others := map[string]int64{notTAT: 3, noExpiry: 1, otherTTL: 1, notString: 1}
	if counts.Seen != 2507 || counts.Written != 2499 || counts.Kept != 1 || !maps.Equal(counts.Others, others) ||
		!maps.Equal(counts.Refused, map[string]int64{"the target's key holds something else": 1}) {
		t.Errorf("got %+v", counts)
	}
	for key, tatNs := range want {
		got, err := into.Get(ctx, key).Int64()
		if err != nil || max(got-tatNs, tatNs-got) > int64(time.Second) {
			t.Fatalf("%s: got %d, %v, want %d", key, got, err, tatNs)
		}
		if ttl := into.PTTL(ctx, key).Val(); key != "user:7" && max(ttl-time.Hour, time.Hour-ttl) > time.Hour {
			t.Fatalf("%s lives for %s", key, ttl)
		}
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	other = redis.NewClient(&redis.Options{Network: "unix", Addr: into.Options().Addr, DB: 9})
	if got, err := other.Get(ctx, "\x00\xff").Int64(); err != nil || max(got-inOther, inOther-got) > int64(time.Second) {
		t.Errorf("in the other database: %d, %v, want %d", got, err, inOther)
	}
}

// TestRate: a page holds at most a tenth of a second's keys.
func TestRate(t *testing.T) {
	from := redistest.Start(t)
	for i := range 30 {
		throttled(t, from, fmt.Sprintf("user:%d", i), time.Hour)
	}
	pages := 0
	im := Import{From: open(t, from), Match: "*", DB: -1, Rate: 100, Progress: func(Counts, int64) { pages++ }}
	began := time.Now()
	if counts, err := im.Run(t.Context()); err != nil || counts.Written != 30 {
		t.Fatalf("%+v, %v", counts, err)
	}
	if took := time.Since(began); pages < 2 || took < 250*time.Millisecond {
		t.Errorf("%d pages in %s", pages, took)
	}
}

// TestDumpAndLoad by a stream; a second load changes nothing.
func TestDumpAndLoad(t *testing.T) {
	from, into := redistest.Start(t), redistest.Start(t)
	for i := range 1500 {
		throttled(t, from, fmt.Sprintf("user:%d", i), time.Hour)
	}
	var all []Entry
	source := open(t, from)
	if err := source.Dump(t.Context(), func(e Entry) error { all = append(all, e); return nil }, func(int64, int64) {}); err != nil {
		t.Fatal(err)
	}
	all = append(all, entry(0, "expired", time.Now().Add(-time.Second).UnixNano()), entry(5, "other", time.Now().Add(time.Hour).UnixNano()))
	b := stream(t, all)
	target := open(t, into)
	for _, want := range []Counts{{Seen: 1502, Written: 1501, Expired: 1}, {Seen: 1502, Kept: 1501, Expired: 1}} {
		r, err := NewStreamReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Load(t.Context(), r, target, func(Counts) {})
		if err != nil || got.Seen != want.Seen || got.Written != want.Written || got.Kept != want.Kept || got.Expired != want.Expired {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	bad, err := NewCSVReader(strings.NewReader("key,tat_ns\na,4000000000000000000\nb,x\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Load(t.Context(), bad, target, func(Counts) {}); err == nil || got.Seen != 0 {
		t.Errorf("a bad line: got %+v, %v, want no key", got, err)
	}
	if numbers, keys, err := target.databases(t.Context()); err != nil || keys != 1501 || len(numbers) != 2 {
		t.Errorf("the target has %d keys in %v, %v", keys, numbers, err)
	}
	if err := from.Set(t.Context(), "text", "hello", 0).Err(); err != nil {
		t.Fatal(err)
	}
	err = source.Dump(t.Context(), func(Entry) error { return nil }, func(int64, int64) {})
	if err == nil || !strings.Contains(err.Error(), `key "text" of database 0 is not a limiter`) {
		t.Errorf("a dump of something else: %v", err)
	}
}

// TestLoadDir: a directory returns what was loaded; one with data, or a damaged dump, stays unchanged.
func TestLoadDir(t *testing.T) {
	now := time.Now().UnixNano()
	path := t.TempDir() + "/data"
	want := []Entry{entry(0, "a", now+1e15), entry(9, "\x00", now+2e15)}
	b := stream(t, append(want, entry(0, "gone", now-1), entry(0, "far", 1<<63-1), entry(0, strings.Repeat("k", 1<<20+1), now+1e15)))
	load := func(b []byte) (Counts, error) {
		r, err := NewStreamReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		return LoadDir(path, now, r)
	}
	if _, err := load(b[:len(b)-1]); !errors.Is(err, ErrDamaged) {
		t.Errorf("a damaged dump: %v", err)
	}
	if keys, err := ReadDir(t.Context(), path, now); err != nil || keys.Count() != 0 {
		t.Errorf("it left %d keys, %v", keys.Count(), err)
	}
	refused := map[string]int64{"empty in more than 2^62 ns": 1, "the key is longer than 1 MiB": 1}
	if counts, err := load(b); err != nil || counts.Written != 2 || counts.Expired != 1 || !maps.Equal(counts.Refused, refused) {
		t.Errorf("got %+v, %v", counts, err)
	}
	if _, err := load(b); err == nil || !strings.Contains(err.Error(), "has data already") {
		t.Errorf("loaded twice: %v", err)
	}
	keys, err := ReadDir(t.Context(), path, now)
	if err != nil || keys.NowNs != now {
		t.Fatalf("%+v, %v", keys, err)
	}
	got := map[string]int64{}
	if err := keys.Each(t.Context(), func(e Entry) error { got[string(e.Key.Name)] = e.State.ExpiresNs; return nil }); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got, map[string]int64{"a": now + 1e15, "\x00": now + 2e15}) {
		t.Errorf("got %v", got)
	}
	failure := errors.New("full")
	if err := keys.Each(t.Context(), func(Entry) error { return failure }); !errors.Is(err, failure) {
		t.Errorf("a visit that fails: %v", err)
	}
	if report, keys, err := CheckDir(t.Context(), path, now); err != nil || report.Damaged() || keys.Count() != 2 {
		t.Errorf("%+v, %v", report, err)
	}
}
