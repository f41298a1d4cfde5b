package session_test

import (
	"strings"
	"testing"

	"cellserver/internal/decide/observe"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
)

// TestBatching: the calls of one Feed reach the store together, at one reading of the clock, up to
// observe.MaxBatch of them; another command between them starts a new batch, and replies keep their order.
// Batches and other commands are timed by a second reading.
func TestBatching(t *testing.T) {
	const throttle, refused = "CL.THROTTLE k 999 1 1\r\n", "CL.THROTTLE k 999 x 1\r\n"
	many := func(n int) string { return strings.Repeat(throttle, n) }
	for _, tt := range []struct {
		name     string
		in       string
		readings int
		between  string // other replies than CL.THROTTLE's numbers
	}{
		{name: "one", in: throttle, readings: 2},
		{name: "two", in: many(2), readings: 2},
		{name: "as many as a batch holds", in: many(observe.MaxBatch), readings: 2},
		{name: "one more", in: many(observe.MaxBatch + 1), readings: 2 * 2},
		{name: "many", in: many(3*observe.MaxBatch - 1), readings: 3 * 2},
		{name: "a full batch and a PING", in: many(observe.MaxBatch) + "PING\r\n", readings: 2 + 2, between: commandstest.Pong},
		{name: "PING in front", in: "PING\r\n" + many(2), readings: 2 + 2, between: commandstest.Pong},
		{name: "PING between", in: many(2) + "PING\r\n" + many(2), readings: 2*2 + 2, between: commandstest.Pong},
		{name: "an error between", in: many(2) + refused + many(2), readings: 2 * 2,
			between: "-Cell error: Store error: Couldn't parse as integer: x\r\n"},
		{name: "an unknown command between", in: many(2) + "FOO\r\n" + many(2), readings: 2 * 2,
			between: "-ERR unknown command 'FOO', with args beginning with: \r\n"},
		{name: "wrong arity between", in: many(2) + "ECHO\r\n" + many(2), readings: 2 * 2,
			between: "-ERR wrong number of arguments for 'echo' command\r\n"},
		{name: "nothing between", in: many(2) + "\r\n*0\r\n*-1\r\n" + many(2), readings: 2},
		{name: "errors alone", in: refused + refused, readings: 0,
			between: strings.Repeat("-Cell error: Store error: Couldn't parse as integer: x\r\n", 2)},
		{name: "DBSIZE reads the clock for itself, and is timed aside", in: many(2) + "DBSIZE\r\n", readings: 2 + 2 + 4 + 2, between: ":1\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := commandstest.New()
			s := r.Session()
			r.Clock.StepBy(1) // changes nothing but the count of readings
			got := commandstest.Say(t, s, tt.in)
			if got := r.Clock.Readings(); got != tt.readings {
				t.Errorf("the clock was read %d times, want %d", got, tt.readings)
			}
			var between strings.Builder
			calls := int64(0)
			for len(got) > 0 {
				calls++
				if want := resptest.Ints(0, 1000, 1000-calls, -1, calls); strings.HasPrefix(got, want) {
					got = got[len(want):]
					continue
				}
				calls--
				line, rest, _ := strings.Cut(got, "\r\n")
				between.WriteString(line + "\r\n")
				got = rest
			}
			if want := int64(strings.Count(tt.in, throttle)); calls != want || between.String() != tt.between {
				t.Errorf("%d calls are answered in order, and else %q; want %d and %q", calls, between.String(), want, tt.between)
			}
		})
	}
}

// TestDatabasesInAPipeline: SELECT affects later calls only.
func TestDatabasesInAPipeline(t *testing.T) {
	s := commandstest.New().Session()
	const throttle = "CL.THROTTLE k 0 1 60\r\n"
	first, second := resptest.Ints(0, 1, 0, -1, 60), resptest.Ints(1, 1, 0, 60, 60)
	got := commandstest.Say(t, s, throttle+"SELECT 1\r\n"+throttle+throttle+"SELECT 99\r\n"+throttle+"DBSIZE\r\nSELECT 0\r\n"+
		throttle+"SELECT 2\r\nDBSIZE\r\nEXISTS k\r\n"+throttle+"FLUSHDB\r\nSELECT 1\r\nEXISTS k\r\n")
	want := first + "+OK\r\n" + first + second + "-ERR DB index is out of range\r\n" + second + ":1\r\n+OK\r\n" +
		second + "+OK\r\n:0\r\n:0\r\n" + first + "+OK\r\n+OK\r\n:1\r\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
