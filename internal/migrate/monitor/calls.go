package monitor

import (
	"log/slog"
	"strings"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/glob"
)

// Use is a command's effect on the keys of limiters.
type Use uint8

const (
	// Decides is a call whose arguments and time determine the new state; Request reads it.
	Decides Use = iota
	// Limits is another limiter's call, which depends on more than its arguments and the time.
	Limits
	// Reads is a call that changes no key, or only by calls that MONITOR shows as well, as in EXEC and EVAL.
	Reads
	// Writes is a call that may change the keys that it names.
	Writes
	// Flushes is a call that may change all keys.
	Flushes
)

// Calls classifies commands. It is safe for concurrent use.
type Calls struct {
	reading  funnel.Reading
	requests map[string]argument.Request
	uses     map[string]Use // of this server's commands, by full name
}

// NewCalls returns Calls that read max_burst as given.
func NewCalls(reading funnel.Reading) *Calls {
	c := &Calls{reading: reading, uses: map[string]Use{}}
	c.requests = argument.Requests(namedlimit.New(namedlimit.Config{Log: slog.New(slog.DiscardHandler)}))
	delete(c.requests, "cl.check")       // its limit is defined elsewhere
	delete(c.requests, "cl.bucket|take") // others fill the bucket
	catalog.New().Each(func(command *catalog.Command) {
		c.uses[command.FullName()] = useOf(command)
		if command.Flags&catalog.FlagModule == 0 {
			delete(c.requests, command.FullName()) // about values
		}
	})
	for name := range c.requests {
		c.uses[name] = Decides
	}
	for _, name := range []string{"flushall", "flushdb", "swapdb"} {
		c.uses[name] = Flushes
	}
	return c
}

func useOf(c *catalog.Command) Use {
	switch {
	case c.Flags&(catalog.FlagScript|catalog.FlagWrite) != catalog.FlagWrite:
		return Reads
	case c.Flags&catalog.FlagModule != 0 && c.Name != "cl.reset":
		return Limits
	}
	return Writes
}

// Use returns the effect of a call and its command's full name in lower case. Commands unknown to this server
// count as Writes.
func (c *Calls) Use(args [][]byte) (use Use, name string) {
	if len(args) == 0 {
		return Reads, ""
	}
	name = glob.Fold(args[0])
	if len(args) > 1 {
		full := name + "|" + glob.Fold(args[1])
		if use, ok := c.uses[full]; ok {
			return use, full
		}
	}
	use, ok := c.uses[name]
	if !ok {
		use = Writes
	}
	return use, name
}

// Request reads a call whose use is Decides. The key is a slice of the line's arguments.
func (c *Calls) Request(name string, line *Line) (q store.Request, err error) {
	if err := c.requests[name](&q, line.DB, line.Args, c.reading, nil); err != nil {
		return q, callError{name, err}
	}
	return q, nil
}

// callError is a server's error reply to the call.
type callError struct {
	name string
	err  error
}

func (e callError) Error() string {
	text := reply.Text(e.err)
	return e.name + ": " + strings.TrimPrefix(strings.TrimPrefix(text, "ERR "), "Cell error: Store error: ")
}

func (e callError) Unwrap() error { return e.err }
