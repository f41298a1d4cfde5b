package check

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// outage replaces the end of an example for Node: it calls while the server answers, then while it is away,
// and then when it is back, each when told to.
const outage = `
import { createInterface } from "node:readline";
console.warn = () => {};
const told = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
let calls = 0; // each from another address, as a late reply counts and none may be shut out
const answered = async () => { while (!(await allowed("address " + calls++, "answered"))) await new Promise(setImmediate); };
await answered();
console.log("answered");
await told.next();
let refused = true;
for (let i = 0; i < 20; i++) refused = !(await allowed("192.0.2.1", "refused")) && refused;
console.log(refused ? "refused" : "allowed");
await told.next();
await answered();
console.log("answered");
process.exit();
`

// TestRefusedLoginsAreNotCharged: what the samples for Node refuse during an outage is not sent after it.
func TestRefusedLoginsAreNotCharged(t *testing.T) {
	if testing.Short() {
		t.Skip("installs clients")
	}
	binary := build(t)
	limits := fencesOf(section(t, "docs/LIMITS-FILE.md", "Shut out for a while"))[0].text
	ran := 0
	for _, f := range fencesOf(section(t, "docs/CLIENTS.md", "While no limiter answers")) {
		if f.language != "js" {
			continue
		}
		ran++
		t.Run(nodeClient.FindStringSubmatch(f.text)[1], func(t *testing.T) {
			code, _, found := strings.Cut(f.text, "\nconsole.log(")
			if !found {
				t.Fatal("the example prints nothing")
			}
			dir := t.TempDir()
			s := start(t, binary, "--limits-file", write(t, dir, "limits.yml", limits))
			d := newDoor(t, "127.0.0.1:"+s.redisPort)
			rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + s.redisPort})
			defer func() { _ = rdb.Close() }()
			program := writeNode(t, dir, server{redisPort: d.port()}.ports(code)+outage)
			cmd := exec.CommandContext(testContext(t), "node", program)
			cmd.Dir, cmd.Stderr = dir, os.Stderr
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			for _, step := range []struct {
				want  string
				after func()
			}{{"answered", d.close}, {"refused", d.open}, {"answered", func() {}}} {
				if !lines.Scan() || lines.Text() != step.want {
					t.Fatalf("got %q, %v, want %s", lines.Text(), lines.Err(), step.want)
				}
				step.after()
				_, _ = io.WriteString(in, "\n")
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			reply, err := rdb.Do(t.Context(), "CL.CHECK", "login-account", "192.0.2.1 refused", 0).Int64Slice()
			if err != nil || reply[2] != 5 {
				t.Errorf("after refused logins %v, %v, want 5 left", reply, err)
			}
		})
	}
	if ran != 2 {
		t.Errorf("ran %d examples, want two", ran)
	}
}

// door forwards connections to a server, or closes them at once, as if nothing ran there. It keeps its port.
type door struct {
	listener net.Listener
	mu       sync.Mutex // guards what follows
	closed   bool
	inside   []net.Conn
}

func newDoor(t *testing.T, to string) *door {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{listener: l}
	t.Cleanup(func() { _ = l.Close(); d.close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			d.enter(client, to)
		}
	}()
	return d
}

func (d *door) enter(client net.Conn, to string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = client.Close()
		return
	}
	server, err := net.Dial("tcp", to)
	if err != nil {
		_ = client.Close()
		return
	}
	d.inside = append(d.inside, client, server)
	for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() { _, _ = io.Copy(pair[0], pair[1]); _ = pair[0].Close() }()
	}
}

func (d *door) port() string {
	_, port, _ := net.SplitHostPort(d.listener.Addr().String())
	return port
}

func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, c := range d.inside {
		_ = c.Close()
	}
	d.inside = nil
}

func (d *door) open() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = false
}
