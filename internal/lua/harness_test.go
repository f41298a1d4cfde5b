package lua

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"time"
)

// A fakeHost knows a few commands, and answers as Redis does.
type fakeHost struct {
	values map[string]string
	log    []string
	calls  int
	onCall func(args [][]byte, buf []byte) []byte // if set, it answers everything
}

func (h *fakeHost) Log(level int, message string) {
	h.log = append(h.log, strconv.Itoa(level)+" "+message)
}

func (h *fakeHost) Allows(args [][]byte) (allowed, known bool) {
	name := string(args[0])
	return name == "get", name == "get" || name == "set"
}

func (h *fakeHost) Call(args [][]byte, resp3 bool, buf []byte) []byte {
	h.calls++
	if h.onCall != nil {
		return h.onCall(args, buf)
	}
	bulk := func(s string) []byte { return append(buf, fmt.Sprintf("$%d\r\n%s\r\n", len(s), s)...) }
	switch name := string(bytes.ToLower(args[0])); {
	case name == "ping":
		return append(buf, "+PONG\r\n"...)
	case name == "echo" && len(args) == 2:
		return bulk(string(args[1]))
	case name == "set" && len(args) == 3:
		if h.values == nil {
			h.values = map[string]string{}
		}
		h.values[string(args[1])] = string(args[2])
		return append(buf, "+OK\r\n"...)
	case name == "get" && len(args) == 2:
		if v, ok := h.values[string(args[1])]; ok {
			return bulk(v)
		}
		if resp3 {
			return append(buf, "_\r\n"...)
		}
		return append(buf, "$-1\r\n"...)
	case name == "echo" || name == "set" || name == "get":
		return append(buf, "-ERR Wrong number of args calling Redis command from script\r\n"...)
	}
	return append(buf, "-ERR Unknown Redis command called from script\r\n"...)
}

func byteSlices(list ...string) [][]byte {
	out := make([][]byte, len(list))
	for i, s := range list {
		out[i] = []byte(s)
	}
	return out
}

// eval runs a script as EVAL does, and returns the reply.
func eval(e *Engine, h Host, source string, keys, argv [][]byte) (string, error) {
	s, err := e.Evaluate([]byte(source))
	if err != nil {
		return "-" + err.Error() + "\r\n", nil //nolint:nilerr // the reply is what the tests look at
	}
	reply, err := e.Run(context.Background(), s, keys, argv, h, false, nil)
	return string(reply), err
}

// Run is RunWithin with the time of one run.
func (e *Engine) Run(ctx context.Context, s *Script, keys, argv [][]byte, host Host, resp3 bool, buf []byte) (reply []byte, err error) {
	a := e.Allowance()
	return e.RunWithin(ctx, &a, s, keys, argv, host, resp3, buf)
}

func newEngine(c Config) *Engine {
	c.Now, c.ThreadNow = clock(), ThreadClock()
	c.Native = []string{"cl.throttle", "cl.bucket|take"}
	return New(c)
}

// patientEngine lets scripts take their time, as a busy machine is slow.
func patientEngine() *Engine { return newEngine(Config{TimeLimit: 5 * time.Second}) }

func clock() func() int64 {
	start := time.Now()
	return func() int64 { return int64(time.Since(start)) }
}
