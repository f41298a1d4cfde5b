package throttle_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

// inBubble runs a test on a clock that advances when everything waits.
func inBubble(t *testing.T, f func(t *testing.T, r *commandstest.Harness)) {
	t.Parallel()
	inBubbleOf(t, f)
}

func onSystemClock(c *commands.Config) { c.Now = func() int64 { return time.Now().UnixNano() } }

func inBubbleOf(t *testing.T, f func(t *testing.T, r *commandstest.Harness)) {
	synctest.Test(t, func(t *testing.T) {
		f(t, commandstest.New(onSystemClock))
	})
}

// waits sends a call that must wait.
func waits(t *testing.T, s *commandstest.Client, in string) {
	t.Helper()
	if replies, left, status := commandstest.Feed(t, s, in); replies != "" || left != "" || status != peer.Waiting {
		t.Fatalf("%q: got %q, left %q, status %d", in, replies, left, status)
	}
}

// isAnswered expects an immediate reply.
func isAnswered(t *testing.T, s *commandstest.Client, want string) {
	t.Helper()
	synctest.Wait()
	replies, _, status := commandstest.Feed(t, s, "")
	if replies != want || status == peer.Waiting {
		t.Errorf("got %q, status %d, want %q", replies, status, want)
	}
}

// stillWaits expects no reply yet.
func stillWaits(t *testing.T, s *commandstest.Client) { t.Helper(); synctest.Wait(); waits(t, s, "") }

const oneASecond = " 0 1 1 1 " // max_burst, count, period, quantity

func TestBThrottle(t *testing.T) {
	inBubble(t, func(t *testing.T, r *commandstest.Harness) { testTurns(t, r, 2) })
}

// testTurns: a call is answered when its turn comes, or at once if that exceeds its timeout, and INFO counts
// it. The second call's reset after is as of its reply in memory, and as of its debit over a remote store.
func testTurns(t *testing.T, r *commandstest.Harness, resetAfter int64) {
	s, second, third := r.Session(), r.Session(), r.Session()
	blocked := func(n int) {
		t.Helper()
		commandstest.ExpectLike(t, s, "INFO clients\r\n", "…"+fmt.Sprintf("blocked_clients:%d\r\n", n)+"…")
	}
	commandstest.Expect(t, s, "CL.BTHROTTLE k"+oneASecond+"5\r\n", resptest.Ints(0, 1, 0, -1, 1))
	waits(t, second, "CL.BTHROTTLE k"+oneASecond+"1\r\n")
	stillWaits(t, second)
	// later than its timeout
	commandstest.Expect(t, s, "CL.BTHROTTLE k"+oneASecond+"1.5\r\n", resptest.Ints(1, 1, 0, 2, 2))
	waits(t, third, "CL.BTHROTTLE k"+oneASecond+"0\r\n")
	stillWaits(t, third)
	commandstest.Expect(t, s, "CL.THROTTLE k 0 1 1\r\n", resptest.Ints(1, 1, 0, 3, 3)) // never waits
	blocked(2)
	time.Sleep(999 * time.Millisecond)
	stillWaits(t, second)
	time.Sleep(time.Millisecond)
	isAnswered(t, second, resptest.Ints(0, 1, 0, -1, resetAfter))
	stillWaits(t, third)
	time.Sleep(time.Second)
	isAnswered(t, third, resptest.Ints(0, 1, 0, -1, 1))
	blocked(0)
	const stats = "cmdstat_cl.bthrottle:calls=4,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=0\r\n"
	commandstest.ExpectLike(t, s, "INFO commandstats\r\n", "…"+stats+"…")
}

// TestBThrottleBehindIt: the client's later commands follow its reply.
func TestBThrottleBehindIt(t *testing.T) {
	inBubble(t, func(t *testing.T, r *commandstest.Harness) {
		s := r.Session()
		const call = "CL.BTHROTTLE k" + oneASecond + "60\r\n"
		beganNs := time.Now().UnixNano()
		got := commandstest.Say(t, s, "PING\r\n"+call+call+"PING\r\n"+call+"CL.BTHROTTLE k 0 1 1 0 60\r\n")
		one := resptest.Ints(0, 1, 0, -1, 1)
		if want := commandstest.Pong + one + one + commandstest.Pong + one + one; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if ns := time.Now().UnixNano() - beganNs; ns != int64(2*time.Second) {
			t.Errorf("it took %s", time.Duration(ns))
		}
	})
}

// TestBThrottleMuted waits without a reply.
func TestBThrottleMuted(t *testing.T) {
	inBubble(t, func(t *testing.T, r *commandstest.Harness) {
		const call = "CL.BTHROTTLE k" + oneASecond + "60\r\n"
		commandstest.Expect(t, r.Session(), "CLIENT REPLY OFF\r\n"+call+call+call+"CLIENT REPLY ON\r\nCL.THROTTLE k 0 1 1 0\r\n",
			"+OK\r\n"+resptest.Ints(0, 1, 0, -1, 1))
	})
}

// TestBThrottleLeaving: a client that leaves in any way returns its debit, and the next one advances.
func TestBThrottleLeaving(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, r *commandstest.Harness, s *commandstest.Client){
		"reset":       func(_ *testing.T, _ *commandstest.Harness, s *commandstest.Client) { s.HungUp(peer.Reset) },
		"half closed": func(_ *testing.T, _ *commandstest.Harness, s *commandstest.Client) { s.HungUp(peer.HalfClosed) },
		"closed":      func(_ *testing.T, _ *commandstest.Harness, s *commandstest.Client) { s.Close() },
		"both": func(_ *testing.T, _ *commandstest.Harness, s *commandstest.Client) {
			s.HungUp(peer.HalfClosed)
			s.HungUp(peer.Reset)
			s.Close()
		},
		"unblocked": func(t *testing.T, r *commandstest.Harness, _ *commandstest.Client) {
			commandstest.Expect(t, r.Session(), "CLIENT UNBLOCK 2\r\nCLIENT UNBLOCK 2\r\n", ":1\r\n:0\r\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *commandstest.Harness) {
				first, leaving, behind := r.Session(), r.Session(), r.Session()
				commandstest.Say(t, first, "CL.BTHROTTLE k 0 1 60 1 0\r\n")
				waits(t, leaving, "CL.BTHROTTLE k 0 1 60 1 0\r\n")
				waits(t, behind, "CL.BTHROTTLE k 0 1 60 1 0\r\n")
				leave(t, r, leaving)
				commandstest.Expect(t, first, "CL.THROTTLE k 0 1 60 0\r\n", resptest.Ints(1, 1, 0, 60, 120))
				time.Sleep(time.Minute)
				isAnswered(t, behind, resptest.Ints(0, 1, 0, -1, 60))
				if name != "closed" && name != "both" {
					commandstest.Feed(t, leaving, "")
				}
				if n := r.Engine.Clients.Blocked(); n != 0 {
					t.Errorf("%d are blocked", n)
				}
			})
		})
	}
}

// TestBThrottleUnblocked: CLIENT UNBLOCK ends the wait with a timeout or an error, and reports whether it
// found one; also in EXEC.
func TestBThrottleUnblocked(t *testing.T) {
	limited := resptest.Ints(1, 1, 0, 60, 60)
	for _, tt := range []struct{ call, reply, told string }{
		{"CLIENT UNBLOCK 2\r\n", ":1\r\n", limited},
		{"CLIENT UNBLOCK 2 TIMEOUT\r\n", ":1\r\n", limited},
		{"client unblock 2 error\r\n", ":1\r\n", "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"},
		{"CLIENT UNBLOCK 1 ERROR\r\nCLIENT UNBLOCK 9\r\nCLIENT UNBLOCK 2\r\n", ":0\r\n:0\r\n:1\r\n", limited},
		{"CLIENT UNBLOCK x\r\nCLIENT UNBLOCK 2 NOW\r\nCLIENT UNBLOCK 2\r\n", "-ERR value is not an integer or out of range\r\n-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR\r\n:1\r\n", limited},
		{"MULTI\r\nCL.THROTTLE k 0 1 60 0\r\nCLIENT UNBLOCK 2\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n" + resptest.Ints(1, 1, 0, 60, 120) + ":1\r\n", limited},
	} {
		t.Run(strings.TrimSpace(tt.call), func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *commandstest.Harness) {
				other, s := r.Session(), r.Session()
				commandstest.Say(t, other, "CL.BTHROTTLE k 0 1 60 1 0\r\n")
				waits(t, s, "CL.BTHROTTLE k 0 1 60 1 0\r\n")
				commandstest.Expect(t, other, tt.call, tt.reply)
				isAnswered(t, s, tt.told)
				commandstest.Expect(t, other, "CL.THROTTLE k 0 1 60\r\n", limited)
			})
		})
	}
}

// TestBThrottleMovesUp when any command returns units to the key, also in EXEC and in scripts.
func TestBThrottleMovesUp(t *testing.T) {
	for _, in := range []string{
		"DEL k", "UNLINK k", "FLUSHDB", "FLUSHALL", "CL.RESET k", "CL.REFUND k 0 1 60 2", "CL.THROTTLE k 0 1 60 -2", "CL.BTHROTTLE k 0 1 60 -2 0",
		// a second after the bubble's begin
		"PEXPIRE k 0", "DEL k" + strings.Repeat(" x", 1001), "SET k 946684801000000000",
		"MULTI|DEL k|EXEC", "MULTI|CL.REFUND k 0 1 60 2|EXEC", "MULTI|FLUSHALL|EXEC",
		"EVAL \"return redis.call('DEL',KEYS[1])\" 1 k", "EVAL \"return redis.call('CL.REFUND',KEYS[1],0,1,60,2)\" 1 k",
		"EVAL \"redis.call('CL.THROTTLE',KEYS[1],0,1,60,-2) return 1\" 1 k", "MULTI|EVAL \"redis.call('DEL',KEYS[1]) return 1\" 1 k|EXEC",
	} {
		t.Run(in, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *commandstest.Harness) {
				other, s, unmoved := r.Session(), r.Session(), r.Session()
				commandstest.Say(t, other, "CL.BTHROTTLE k 0 1 60 1 0\r\nSELECT 1\r\nCL.BTHROTTLE k 0 1 60 1 0\r\nSELECT 0\r\n")
				waits(t, s, "CL.BTHROTTLE k 0 1 60 1 0\r\n")
				if in != "FLUSHALL" && in != "MULTI|FLUSHALL|EXEC" {
					commandstest.Say(t, unmoved, "SELECT 1\r\n")
					waits(t, unmoved, "CL.BTHROTTLE k 0 1 60 1 0\r\n")
					defer stillWaits(t, unmoved)
				}
				if got := commandstest.Say(t, other, strings.ReplaceAll(in, "|", "\r\n")+"\r\n"); strings.Contains(got, "-ERR") {
					t.Errorf("got %q", got)
				}
				synctest.Wait()
				if got, _, status := commandstest.Feed(t, s, ""); !strings.HasPrefix(got, "*5\r\n:0\r\n:1\r\n") || status == peer.Waiting {
					t.Errorf("got %q, status %d", got, status)
				}
			})
		})
	}
}

// TestBThrottleBehindAReservation advances when that is committed with less, or expires without a command.
func TestBThrottleBehindAReservation(t *testing.T) {
	t.Parallel()
	for commit, wait := range map[string]time.Duration{"CL.COMMIT k %s 0\r\n": 0, "PING %s\r\n": 11 * time.Second} {
		inBubbleOf(t, func(t *testing.T, r *commandstest.Harness) {
			other, s := r.Session(), r.Session()
			reserved := resptest.ParseAll(t, commandstest.Say(t, other, "CL.RESERVE k 0 1 60 1 10000\r\n"))
			waits(t, s, "CL.BTHROTTLE k 0 1 60 1 0\r\n")
			commandstest.Say(t, other, fmt.Sprintf(commit, reserved[0].Elements[5].Text))
			time.Sleep(wait)
			synctest.Wait()
			if got, _, _ := commandstest.Feed(t, s, ""); !strings.HasPrefix(got, "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:") {
				t.Errorf("%s: got %q", commit, got)
			}
		})
	}
}

// TestBThrottleNeverWaits in EXEC, in scripts, or without a reason to wait.
func TestBThrottleNeverWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, r *commandstest.Harness) {
		s := r.Session()
		const call = "CL.BTHROTTLE k" + oneASecond + "0\r\n"
		allowed, limited := resptest.Ints(0, 1, 0, -1, 1), resptest.Ints(1, 1, 0, 1, 1)
		for in, want := range map[string]string{
			"MULTI\r\n" + call + call + "EXEC\r\n": "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n" + allowed + limited,
			"EVAL \"redis.call('CL.BTHROTTLE',KEYS[1],0,1,1,1,0) return redis.call('CL.BTHROTTLE',KEYS[1],0,1,1,1,0)\" 1 k\r\n": limited,
			"CL.THROTTLE k 0 1 1\r\nCL.BTHROTTLE k 0 1 1 2 0\r\n":                                                               allowed + resptest.Ints(1, 1, 0, -1, 1),
			"CL.THROTTLE k 0 1 1\r\nCL.BTHROTTLE k 0 1 1 0 0\r\nCL.BTHROTTLE k 0 1 1 -1 0\r\n":                                  allowed + allowed + resptest.Ints(0, 1, 1, -1, 0),
		} {
			commandstest.ExpectLike(t, s, "DEL k\r\n"+in, "…"+want)
		}
	})
}

// TestBThrottleArguments are refused with Redis's or the module's errors.
func TestBThrottleArguments(t *testing.T) {
	t.Parallel()
	s := commandstest.New().Session()
	const notFloat, negative, tooLarge = "-ERR timeout is not a float or out of range\r\n", "-ERR timeout is negative\r\n", "-ERR timeout is out of range\r\n"
	for args, want := range map[string]string{
		"k 0 1 1 1": "-ERR wrong number of arguments for 'cl.bthrottle' command; usage: CL.BTHROTTLE <key> <max_burst> <count_per_period> <period> <quantity> <timeout>\r\n", "k 0 1 1 1 0 0": "-ERR wrong number of arguments for 'cl.bthrottle' command; usage: CL.BTHROTTLE <key> <max_burst> <count_per_period> <period> <quantity> <timeout>\r\n",
		"k 0 1 1 1 x": notFloat, "k 0 1 1 1 nan": notFloat, "k 0 1 1 1 \"\"": notFloat, "k 0 1 1 1 \" 1\"": notFloat,
		"k 0 1 1 1 -0.5": negative, "k 0 1 1 1 -1e15": negative,
		"k 0 1 1 1 inf": tooLarge, "k 0 1 1 1 -inf": tooLarge, "k 0 1 1 1 1e300": tooLarge, "k 0 1 1 1 1e16": tooLarge, "k 0 1 1 1 1e999": tooLarge,
		"k x 1 1 1 0": "-ERR Couldn't parse as integer: x\r\n", "k 0 0 1 1 0": "-ERR Zero rates are not supported\r\n",
	} {
		commandstest.Expect(t, s, "CL.BTHROTTLE "+args+"\r\n", want)
	}
	for _, timeout := range []string{"0", "-0", "0.001", "1e-300", "+5", ".5", "1e15", "9223372036854775"} {
		commandstest.Expect(t, s, "CL.BTHROTTLE "+timeout+" 0 1 1 1 "+timeout+"\r\n",
			resptest.Ints(0, 1, 0, -1, 1))
	}
	commandstest.ExpectLike(t, s, "CL.THROTTLE s 0 1 1\r\nCL.SLIDINGWINDOW w 1 1\r\nCL.BTHROTTLE w 0 1 1 1 0\r\n",
		"…-WRONGTYPE Operation against a key holding the wrong kind of value\r\n")
}

// TestBThrottleIsSeen in CLIENT LIST, and not as slow.
func TestBThrottleIsSeen(t *testing.T) {
	inBubble(t, func(t *testing.T, r *commandstest.Harness) {
		other, s := r.Session(), r.Session()
		commandstest.Say(t, other, "CONFIG SET slowlog-log-slower-than 1000\r\nCONFIG SET latency-monitor-threshold 1\r\nCL.BTHROTTLE k"+oneASecond+"0\r\n")
		waits(t, s, "CL.BTHROTTLE k"+oneASecond+"0\r\n")
		commandstest.ExpectLike(t, other, "CLIENT LIST\r\n", "…flags=N …flags=b …")
		time.Sleep(time.Second)
		isAnswered(t, s, resptest.Ints(0, 1, 0, -1, 1))
		if got := commandstest.Say(t, other, "CLIENT LIST\r\n"); strings.Contains(got, "flags=b ") {
			t.Errorf("got %q", got)
		}
		commandstest.Expect(t, other, "SLOWLOG LEN\r\nLATENCY LATEST\r\n", ":0\r\n*0\r\n")
	})
}

// TestBThrottleAtTheEnd: waiting clients of a server that ends get an error, and return their debits.
func TestBThrottleAtTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, r *commandstest.Harness) {
		other, s := r.Session(), r.Session()
		commandstest.Say(t, other, "CL.BTHROTTLE k"+oneASecond+"0\r\n")
		waits(t, s, "CL.BTHROTTLE k"+oneASecond+"0\r\n")
		r.Engine.EndBackground()
		isAnswered(t, s, "-ERR the command was ended before it was done: the server is shutting down, or its client has gone\r\n")
		limited := resptest.Ints(1, 1, 0, 1, 1)
		commandstest.Expect(t, other, "CL.BTHROTTLE k"+oneASecond+"0\r\n", limited)
	})
}

// TestBThrottleOnADisk is answered after the sync of its debit.
func TestBThrottleOnADisk(t *testing.T) {
	t.Parallel()
	r := commandstest.New(commandstest.Keeping(t, disktest.New(), 0), onSystemClock)
	s := r.Session()
	const call = "CL.BTHROTTLE k 0 100 1 1 60\r\n"
	for _, reply := range resptest.ParseAll(t, commandstest.Say(t, s, call+"CL.THROTTLE z 4 1 1\r\n"+call+call+"CL.THROTTLE z 4 1 1\r\n")) {
		if len(reply.Elements) != 5 || reply.Elements[0].Number != 0 {
			t.Errorf("got %+v", reply)
		}
	}
	waits(t, r.Session(), "CL.BTHROTTLE k 0 1 60 1 0\r\n")
	gone := r.Session()
	waits(t, gone, "CL.BTHROTTLE k 0 1 60 1 0\r\n")
	gone.HungUp(peer.Reset)
	if replies, _, _ := commandstest.Converse(t, gone, ""); !strings.HasPrefix(replies, "-ERR the client closed its side") {
		t.Errorf("got %q", replies)
	}
}
