package patience

import (
	"errors"
	"io"
	"net"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"
)

// TestPatience: a minute without work ends it, however late the look, and any work starts a new minute.
func TestPatience(t *testing.T) {
	for _, tt := range []struct {
		name  string
		used  func(second int) time.Duration // CPU time so far
		known bool
		want  int // second of the end; 0 for none in ten minutes
	}{
		{"idle", func(int) time.Duration { return time.Hour }, true, 60},
		{"next to nothing", func(s int) time.Duration { return time.Duration(s) * leastMoved / 61 }, true, 60},
		{"little", func(s int) time.Duration { return time.Duration(s) * leastMoved / 50 }, true, 0},
		{"busy, then idle", func(s int) time.Duration { return time.Duration(min(s, 100)) * time.Second }, true, 159},
		{"a process ends", func(s int) time.Duration { return time.Hour - time.Duration(s/50)*time.Second }, true, 0},
		{"unknown", func(int) time.Duration { return 0 }, false, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			seconds := func() int { return int(time.Since(began) / time.Second) }
			p, over := Patience{cpuTime: func() (time.Duration, bool) { return tt.used(seconds()), tt.known }}, 0
			for over == 0 && seconds() < 600 {
				if p.Over() {
					over = seconds()
				}
				time.Sleep(tick / 4)
			}
			if over != tt.want {
				t.Errorf("%s: over in second %d, want %d", tt.name, over, tt.want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		p := Patience{cpuTime: func() (time.Duration, bool) { return 0, true }}
		for range 10 { // the machine is suspended
			if p.Over() {
				t.Error("it counts what nobody could do")
			}
			time.Sleep(time.Hour)
		}
	})
}

func TestWaitsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		if !Until(func() bool { asked++; return asked == 3 }) || asked != 3 {
			t.Errorf("asked %d times", asked)
		}
		if Until(func() bool { asked++; return false }) || asked > 200 {
			t.Errorf("still not done after %d attempts", asked)
		}
		values := make(chan int, 1)
		values <- 7
		if v, ok := Receive(values); v != 7 || !ok {
			t.Errorf("received %d, %t", v, ok)
		}
		if v, ok := Receive(values); v != 0 || ok {
			t.Errorf("nothing was sent, but received %d", v)
		}
	})
}

func TestConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		nc := Conn{Conn: ours}
		go func() {
			time.Sleep(10 * tick)
			_, _ = theirs.Write([]byte("late"))
			// The pauses make a write exceed some deadlines.
			for b := make([]byte, 1); b[0] != '.'; time.Sleep(tick / 2) {
				_, _ = theirs.Read(b)
			}
		}()
		b := make([]byte, 8)
		if n, err := nc.Read(b); string(b[:n]) != "late" || err != nil {
			t.Errorf("read %q, %v", b[:n], err)
		}
		if n, err := io.WriteString(nc, "0123456789."); n != 11 || err != nil {
			t.Errorf("wrote %d bytes, %v", n, err)
		}
		if n, err := nc.Read(b); n != 0 || !errors.Is(err, ErrIdle) {
			t.Errorf("read %q, %v", b[:n], err)
		}
		if n, err := nc.Write(b); n != 0 || !errors.Is(err, ErrIdle) {
			t.Errorf("wrote %d bytes, %v", n, err)
		}
		_ = theirs.Close()
		if n, err := nc.Read(b); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("read %q, %v", b[:n], err)
		}
	})
}

// TestProcesses: the CPU time of child processes counts, also after their end.
func TestProcesses(t *testing.T) {
	before, known := processes()
	if !known {
		t.Skip("the system does not tell the CPU time of processes")
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c",
		"(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo; read end); true")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Skip("requires a shell:", err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // from the grandchild
		t.Error(err)
	}
	running, known := processes()
	if !known || running <= before {
		t.Errorf("%s, %t, and before %s", running, known, before)
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if after, _ := processes(); after < running {
		t.Errorf("%s, and %s while it ran", after, running)
	}
}
