package tools

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/limiter"
	rdbcodec "cellserver/internal/store/rdb"
	"cellserver/internal/test/processtest"
	"cellserver/internal/test/redistest"
)

// asRedisCell makes keys as redis-cell does: a decimal TAT that expires at its time.
func asRedisCell(t *testing.T, p *harness.Process, db, n int, prefix string) map[string]int64 {
	t.Helper()
	return makeTATs(t, p, db, n, prefix, func(pipe redis.Pipeliner, key string, tatNs int64) {
		pipe.Do(t.Context(), "SET", key, tatNs, "PXAT", tatNs/1e6)
	})
}

// makeFunnels makes keys of a cellserver.
func makeFunnels(t *testing.T, p *harness.Process, db, n int, prefix string) map[string]int64 {
	t.Helper()
	codec := rdbcodec.NewCodec()
	return makeTATs(t, p, db, n, prefix, func(pipe redis.Pipeliner, key string, tatNs int64) {
		pipe.Restore(t.Context(), key, 0, string(codec.Append(nil, &limiter.State{ExpiresNs: tatNs})))
	})
}

func makeTATs(t *testing.T, p *harness.Process, db, n int, prefix string, create func(pipe redis.Pipeliner, key string, tatNs int64)) map[string]int64 {
	t.Helper()
	client := redistest.NewClient(t, redis.Options{Addr: p.Addr, DB: db})
	tats := map[string]int64{}
	pipe := client.Pipeline()
	for i := range n {
		key := fmt.Sprintf("%s%d", prefix, i)
		tats[key] = time.Now().Add(time.Hour + time.Duration(i)*time.Second).UnixNano()
		create(pipe, key, tats[key])
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	return tats
}

// measured bounds the error of a clock's measurement on a busy machine. Keys' times are further apart.
const measured = 500 * time.Millisecond

// wantTATs requires exactly these funnels in a database of a cellserver.
func wantTATs(t *testing.T, p *harness.Process, db int, want map[string]int64) {
	t.Helper()
	client := redistest.NewClient(t, redis.Options{Addr: p.Addr, DB: db})
	if n, err := client.DBSize(t.Context()).Result(); err != nil || int(n) != len(want) {
		t.Errorf("database %d has %d keys, %v, want %d", db, n, err, len(want))
	}
	for key, tatNs := range want {
		got, err := client.Get(t.Context(), key).Int64()
		if err != nil || max(got-tatNs, tatNs-got) > int64(measured) {
			t.Fatalf("%s: got %d, %v, want %d", key, got, err, tatNs)
		}
		if err := client.StrLen(t.Context(), key).Err(); err == nil {
			t.Fatalf("%s is a value", key)
		}
	}
}

func url(p *harness.Process) string { return "redis://" + p.Addr }

func TestImport(t *testing.T) {
	t.Parallel()
	from, into := harness.StartRedis(t), harness.StartServer(t)
	first, other := asRedisCell(t, from, 0, 2500, "user:"), asRedisCell(t, from, 3, 5, "\xff\x00")
	harness.Exchange(t, harness.DialTCP(t, from.Addr), "SET session abc EX 3600\r\nSET page 1 EX 3600\r\nLPUSH list 1\r\n", "+OK\r\n+OK\r\n:1\r\n")
	const others = "skipped     1: does not expire at its time\nskipped     1: not a number of nanoseconds\nskipped     1: not a string\n"

	code, out, errOut := harness.Call(t, nil, "import", "--dry-run", url(from))
	if want := `db 0  "user:`; code != 0 || strings.Count(out, want) < 9 || !strings.HasSuffix(out, "keys        2508\nto import   2505\n"+others) {
		t.Errorf("a dry run: got %d, %q, %q", code, out, errOut)
	}
	wantTATs(t, into, 0, nil)
	if code, out, errOut := harness.Call(t, nil, "import", "--into", url(into), url(from)); code != 0 || errOut != "" || out != "keys        2508\nimported    2505\n"+others {
		t.Errorf("got %d, %q, %q", code, out, errOut)
	}
	wantTATs(t, into, 0, first)
	wantTATs(t, into, 3, other)

	// A later state stays, and missing keys are made.
	first["user:0"] += int64(time.Hour)
	harness.Exchange(t, into.Dial(t), fmt.Sprintf("SET user:0 %d\r\n", first["user:0"]), "+OK\r\n")
	harness.Exchange(t, into.Dial(t), "DEL user:1\r\n", ":1\r\n")
	code, out, _ = harness.Call(t, []string{"CELLSERVER_FROM=" + url(from), "CELLSERVER_INTO=" + url(into)}, "import", "--match", "user:?", "--db", "0")
	if code != 0 || !regexp.MustCompile(`^keys        10\nimported    [1-9]\nleft        \d: the target's state is the same or later\n$`).MatchString(out) {
		t.Errorf("a second one: got %d, %q", code, out)
	}
	wantTATs(t, into, 0, first)
}

// TestImportIsResumed: an interrupted import says where it was, and the next one continues there.
func TestImportIsResumed(t *testing.T) {
	t.Parallel()
	from, into := harness.StartRedis(t), harness.StartServer(t)
	tats := asRedisCell(t, from, 0, 3000, "user:")
	state := filepath.Join(t.TempDir(), "state")
	args := []string{"import", "--into", url(into), "--resume", state, url(from)}
	p := harness.Start(t, harness.Command(t, append(args, "--rate", "100")...))
	p.Eventually(t, "write its state", func() bool {
		_, err := os.Stat(state)
		return err == nil
	})
	if code := p.Stop(t, syscall.SIGINT); code != 1 {
		t.Errorf("it ended with %d", code)
	}
	const seen = `imported    (\d+)\n.*interrupted; call it again, with --resume .*/state, to continue\n$`
	if m := regexp.MustCompile(`(?s)` + seen).FindStringSubmatch(p.Log.String()); m == nil {
		t.Errorf("it got %q", p.Log.String())
	}
	if code, out, errOut := harness.Call(t, nil, args...); code != 0 || out != "keys        3000\nimported    3000\n" {
		t.Errorf("got %d, %q, %q", code, out, errOut)
	}
	if _, err := os.Stat(state); err == nil {
		t.Error("the state is still there")
	}
	wantTATs(t, into, 0, tats)
}

func TestDumpAndLoad(t *testing.T) {
	t.Parallel()
	first, second, third := harness.StartServer(t), harness.StartServer(t), harness.StartServer(t)
	tats, other := makeFunnels(t, first, 0, 1500, "user:"), makeFunnels(t, first, 7, 3, "\xff\r\n,")
	dir := t.TempDir()
	file, data, lines := filepath.Join(dir, "keys.dump"), filepath.Join(dir, "data"), filepath.Join(dir, "keys.csv")
	for _, step := range []struct {
		args []string
		want string
	}{
		{[]string{"dump", "--from", first.Addr, file}, "dump: 1503 keys\n"},
		{[]string{"load", "--into", second.Addr, file}, "keys        1503\nloaded      1503\n"},
		{[]string{"load", "--into", url(second), file}, "keys        1503\nloaded      0\nleft        1503: the target's state is the same or later\n"},
		{[]string{"load", "--into", data, file}, "keys        1503\nloaded      1503\n"},
		{[]string{"dump", "--from", data, "--format", "csv", lines}, "dump: 1503 keys\n"},
		{[]string{"load", "--into", url(third), "--format", "csv", lines}, "keys        1503\nloaded      1503\n"},
	} {
		if code, out, errOut := harness.Call(t, nil, step.args...); code != 0 || out+errOut != step.want {
			t.Fatalf("%q: got %d, %q, %q", step.args, code, out, errOut)
		}
	}
	for _, p := range []*harness.Process{second, third} {
		wantTATs(t, p, 0, tats)
		wantTATs(t, p, 7, other)
	}
	names, err := filepath.Glob(filepath.Join(dir, ".*"))
	if info, statErr := os.Stat(file); err != nil || len(names) != 0 || statErr != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("there are %v, and a dump %v, %v", names, info, statErr)
	}
	code, out, errOut := harness.Call(t, nil, "dump", "--from", data, "--format=csv", "-")
	if b, err := os.ReadFile(lines); err != nil || code != 0 || len(out) != len(b) {
		t.Errorf("to standard output: got %d, %d bytes of %d, %q", code, len(out), len(b), errOut)
	}
}

// TestDamagedDump: a damaged file loads nothing; standard input loads what precedes the damage, and says so.
func TestDamagedDump(t *testing.T) {
	t.Parallel()
	first, second := harness.StartServer(t), harness.StartServer(t)
	makeFunnels(t, first, 0, 30_000, "user:")
	file := filepath.Join(t.TempDir(), "keys.dump")
	if code, _, errOut := harness.Call(t, nil, "dump", "--from", url(first), file); code != 0 {
		t.Fatal(errOut)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	newer := slices.Clone(b)
	newer[8]++ // the format
	for _, tt := range []struct {
		dump []byte
		want string
	}{
		{b[:len(b)-1], "the dump is damaged or truncated: it ends at byte"},
		{append(slices.Clone(b[:len(b)-20]), b[len(b)-19:]...), "the dump is damaged or truncated: "},
		{newer, "the dump is damaged or truncated: byte 24"},
		{[]byte("db,key,tat_ns\n"), "not a cellserver dump; a CSV file needs --format csv"},
	} {
		if err := os.WriteFile(file, tt.dump, 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errOut := harness.Call(t, nil, "load", "--into", url(second), file)
		if code != 1 || out != "" || !strings.HasPrefix(errOut, "cellserver: load: "+file+": "+tt.want) || !strings.HasSuffix(errOut, "; nothing was loaded\n") {
			t.Errorf("got %d, %q, %q", code, out, errOut)
		}
	}
	wantTATs(t, second, 0, nil)
	cmd := harness.Command(t, "load", "--into", url(second))
	cmd.Stdin = strings.NewReader(string(b[:len(b)-1]))
	out, _ := cmd.CombinedOutput()
	// A busy machine takes over five seconds and prints progress.
	if !regexp.MustCompile(`(?s)^(?:\d+ keys, \d+ keys/s\n)*keys        30000\nloaded      \d0000\ncellserver: load: ended after 30000 keys: the dump is damaged`).Match(out) {
		t.Errorf("from standard input: %s", out)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	file := harness.WriteFile(t, fmt.Sprintf("key,tat_ns\na,%d\nb,%[1]d\n", time.Now().Add(time.Hour).UnixNano()))
	if code, _, errOut := harness.Call(t, nil, "load", "--format=csv", "--into", data, file); code != 0 {
		t.Fatal(errOut)
	}
	check := func(wantCode int, wantOut, wantErr string) {
		t.Helper()
		code, out, errOut := harness.Call(t, nil, "check", data)
		if code != wantCode || !regexp.MustCompile(wantOut).MatchString(out) || errOut != wantErr {
			t.Errorf("got %d, %q, %q", code, out, errOut)
		}
	}
	check(0, `^snapshot-00000001  1 frame, 2 records, \d+ bytes  ok\nlast seen  20.*Z\nlive keys  2\n$`, "")
	if code, _, errOut := harness.Call(t, nil, "load", "--format=csv", "--into", data, file); code != 1 || !strings.Contains(errOut, data+" has data already; ") {
		t.Errorf("loaded twice: %d, %q", code, errOut)
	}
	locked, err := disk.OpenOS(data)
	if err != nil {
		t.Fatal(err)
	}
	check(1, "^$", "cellserver: check: "+data+" is in use by a running server: give its redis://HOST:PORT, or stop it first\n")
	if err := locked.Close(); err != nil {
		t.Fatal(err)
	}
	snapshot := filepath.Join(data, "snapshot-00000001")
	b, err := os.ReadFile(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	b[40] ^= 1
	if err := os.WriteFile(snapshot, b, 0o600); err != nil {
		t.Fatal(err)
	}
	check(1, `(?m)^snapshot-00000001  0 frames, 0 records, \d+ bytes  DAMAGED: `+persist.ErrDamaged.Error()+`: byte 28`,
		"cellserver: check: "+data+" is damaged: copy it, and start the server with --data-recover to keep what can be read, or restore a backup\n")
	if code, _, errOut := harness.Call(t, nil, "dump", "--from", data, "-", "--format=csv"); code != 1 || !strings.HasSuffix(errOut, "; see cellserver check "+data+"\n") {
		t.Errorf("a dump of it: %d, %q", code, errOut)
	}
}

func TestTransferMistakesAreOneLine(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	locked := harness.StartServer(t, "--requirepass", "open sesame")
	replica := harness.StartRedis(t, "--replicaof", "127.0.0.1 1")
	from := harness.StartRedis(t)
	asRedisCell(t, from, 0, 1, "user:")
	far := harness.StartRedis(t)
	asRedisCell(t, far, 15, 1, "user:")
	few := harness.StartServer(t, "--databases", "1")
	makeFunnels(t, few, 0, 1, "user:")
	missing := filepath.Join(t.TempDir(), "missing")
	empty, dump, text := t.TempDir(), filepath.Join(t.TempDir(), "keys.dump"), harness.WriteFile(t, "key,tat_ns\n")
	if code, _, errOut := harness.Call(t, nil, "dump", "--from", url(few), dump); code != 0 {
		t.Fatal(errOut)
	}
	closed := processtest.FreeAddr(t)
	const urls = "want a URL such as redis://user@host:port, rediss:// for TLS, or unix:///path"
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"import"}, 2, "import: want the source's URL, such as redis://127.0.0.1:6379; see cellserver import --help"},
		{[]string{"import", "http://:secret@x"}, 2, "--from: " + urls},
		{[]string{"import", "redis://:secret%@x"}, 2, "--from: " + urls},
		{[]string{"import", "--rate", "-1", url(from)}, 2, `--rate takes a whole number of at least 0, such as 10; got "-1"`},
		{[]string{"import", "--db", "65536", url(from)}, 2, `--db takes all, or a whole number from 0 to 65535, such as 3; got "65536"`},
		{[]string{"import", "--into", url(locked) + "/3", url(from)}, 2, "--into: leave out the database; keys stay in their database"},
		{[]string{"import", "redis://" + closed}, 1, "import: " + closed + ": dial tcp " + closed + ": connect: connection refused; check the address, and that the server runs"},
		{[]string{"import", "--into", url(few), closed}, 1, "import: " + closed + ": dial tcp " + closed + ": connect: connection refused; check the address, and that the server runs"},
		{[]string{"import", "--into", url(locked), url(from)}, 1, "import: " + locked.Addr + ": NOAUTH Authentication required; give its password by --into-password-file"},
		{[]string{"import", "--into", "redis://:wrong@" + locked.Addr, url(from)}, 1,
			"import: " + locked.Addr + ": WRONGPASS invalid username-password pair or user is disabled; check the user in the URL and the password of --into-password-file"},
		{[]string{"import", "--into", url(replica), url(from)}, 1, "import: " + replica.Addr + ": READONLY You can't write against a read only replica; it is a replica; give the primary's address"},
		{[]string{"import", "--into", url(few), url(far)}, 1, "import: " + few.Addr + ": ERR DB index is out of range; start the target with as many --databases as the source has"},
		{[]string{"dump", "--from", missing}, 1, "dump: no such directory: " + missing},
		{[]string{"dump", "--format", "xml"}, 2, `--format takes stream or csv; got "xml"`},
		{[]string{"dump", "a", "b"}, 2, "dump: want at most one FILE, got 2"},
		{[]string{"dump", "--from", url(from), "/dev/null"}, 1, "dump: /dev/null is not a regular file; use - for standard output"},
		{[]string{"load", missing}, 1, "load: open " + missing + ": no such file or directory"},
		{[]string{"load", "--format", "csv"}, 1, "load: the CSV is empty: its first line must name the columns db,key,key_base64,tat_ns"},
		{[]string{"check"}, 2, "check: want one DIR; see cellserver check --help"},
		{[]string{"check", missing}, 1, "check: no such directory: " + missing},
		{[]string{"check", empty}, 1, "check: " + empty + " is not a data directory: it has neither a MANIFEST nor named limits; give the one that --data-dir names"},
		{[]string{"check", dump}, 1, "check: " + dump + " is a dump, not a data directory: cellserver load " + dump + " checks it, and then loads it"},
		{[]string{"dump", "--from", dump}, 1, "dump: " + dump + " is a dump, not a data directory: cellserver load " + dump + " checks it, and then loads it"},
		{[]string{"load", "--into", url(locked), dump}, 1, "load: " + locked.Addr + ": NOAUTH Authentication required; give its password by --password-file or REDISCLI_AUTH"},
		{[]string{"load", "--into", text, dump}, 1, "load: " + text + " is a file, not a data directory: give the directory that --data-dir names"},
		{[]string{"check", text}, 1, "check: " + text + " is a file, not a data directory: give the directory that --data-dir names"},
		{[]string{"check", "/dev/zero"}, 1, "check: /dev/zero is a file, not a data directory: give the directory that --data-dir names"},
	} {
		code, out, errOut := harness.Call(t, nil, tt.args...)
		if code != tt.code || errOut != "cellserver: "+tt.want+"\n" {
			t.Errorf("%q: got %d, %q, %q, want %d, %q", tt.args, code, out, errOut, tt.code, tt.want)
		}
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("a directory was made")
	}
}

// TestDataDirIsMoved: the directory of a killed server is dumped, loaded into another directory, and served
// from there, with the limits and overrides of commands once their files are copied beside.
func TestDataDirIsMoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, moved, file := filepath.Join(dir, "data"), filepath.Join(dir, "moved"), filepath.Join(dir, "keys.dump")
	first := harness.StartKeeping(t, data, "--fsync-interval", "0")
	tats, other := makeFunnels(t, first, 0, 500, "user:"), makeFunnels(t, first, 7, 3, "\x00")
	harness.Exchange(t, first.Dial(t), "DEL user:0\r\n", ":1\r\n")
	delete(tats, "user:0")
	harness.Exchange(t, first.Dial(t), "CL.LIMIT SET api FUNNEL 15 30 60\r\n", "+OK\r\n")
	harness.Exchange(t, first.Dial(t), "CL.LIMIT OVERRIDE api vip FUNNEL 99 30 60\r\n", "+OK\r\n")
	const inUse = " is in use by a running server: give its redis://HOST:PORT, or stop it first\n"
	for _, args := range [][]string{{"check", data}, {"dump", "--from", data, file}, {"load", "--into", data, harness.WriteFile(t, "key,tat_ns\n"), "--format=csv"}} {
		if code, out, errOut := harness.Call(t, nil, args...); code != 1 || out != "" || errOut != "cellserver: "+args[0]+": "+data+inUse {
			t.Errorf("%q: got %d, %q, %q", args, code, out, errOut)
		}
	}
	first.Stop(t, syscall.SIGKILL)
	if code, out, errOut := harness.Call(t, nil, "check", data); code != 0 || !strings.HasSuffix(out, "\nlive keys  502\n") {
		t.Errorf("got %d, %q, %q", code, out, errOut)
	}
	if code, _, errOut := harness.Call(t, nil, "dump", "--from", data, file); code != 0 {
		t.Fatal(errOut)
	}
	if code, out, errOut := harness.Call(t, nil, "load", "--into", moved, file); code != 0 || out != "keys        502\nloaded      502\n" {
		t.Fatalf("got %d, %q, %q", code, out, errOut)
	}
	for _, name := range []string{"LIMITS", "OVERRIDES"} {
		b, err := os.ReadFile(filepath.Join(data, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(moved, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second server continues from the first one's files
		p := harness.StartServer(t, "--data-dir", moved)
		harness.Exchange(t, p.Dial(t), "CL.CHECK api vip 0\r\n", "*5\r\n:0\r\n:100\r\n")
		harness.Exchange(t, p.Dial(t), "CL.CHECK api joe 0\r\n", "*5\r\n:0\r\n:16\r\n")
		wantTATs(t, p, 0, tats)
		wantTATs(t, p, 7, other)
		p.Stop(t, syscall.SIGTERM)
	}
	if code, out, errOut := harness.Call(t, nil, "check", moved); code != 0 || !strings.HasSuffix(out, "\nlive keys  502\n") {
		t.Errorf("got %d, %q, %q", code, out, errOut)
	}
}

// TestDumpOverTLS: with a password and SSL_CERT_FILE.
func TestDumpOverTLS(t *testing.T) {
	t.Parallel()
	files, _ := harness.NewTLSFiles(t)
	p := harness.StartServer(t, append(files.Flags(), "--requirepass", "p/w")...)
	harness.Exchange(t, p.Dial(t), "AUTH p/w\r\nCL.THROTTLE a 0 1 3600\r\n", "+OK\r\n*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:3600\r\n")
	_, port, _ := net.SplitHostPort(p.TLSAddr)
	env := []string{"CELLSERVER_FROM=rediss://:p%2Fw@localhost:" + port}
	if code, _, errOut := harness.Call(t, env, "dump", "--format", "csv"); code != 1 || !strings.Contains(errOut, "certificate signed by unknown authority") {
		t.Errorf("without the authority: got %d, %q", code, errOut)
	}
	code, out, errOut := harness.Call(t, append(env, "SSL_CERT_FILE="+files.ClientCA), "dump", "--format", "csv")
	if code != 0 || !strings.HasPrefix(out, "db,key,key_base64,tat_ns,kind,payload_base64\n0,a,,1") || errOut != "dump: 1 key\n" {
		t.Errorf("got %d, %q, %q", code, out, errOut)
	}
}
