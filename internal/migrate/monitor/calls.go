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

// Use is what a command does to the keys of limiters.
type Use uint8

const (
	// Decides is a call of which the arguments say all that its key's state becomes: Request reads it.
	Decides Use = iota
	// Limits is a call of another limiter: what it does depends on more than its arguments and the time.
	Limits
	// Reads is a call that changes no key, or whose own calls MONITOR shows as well, as EXEC's and EVAL's.
	Reads
	// Writes is any other: it may change the keys that it names.
	Writes
	// Flushes is a call that may change all keys.
	Flushes
)

// Calls tells commands apart. It is safe for concurrent use.
type Calls struct {
	reading  funnel.Reading
	requests map[string]argument.Request
	uses     map[string]Use // of the commands that this server has, by their full names
}

// NewCalls reads calls with a reading of max_burst.
func NewCalls(reading funnel.Reading) *Calls {
	c := &Calls{reading: reading, uses: map[string]Use{}}
	c.requests = argument.Requests(namedlimit.New(namedlimit.Config{Log: slog.New(slog.DiscardHandler)}))
	delete(c.requests, "cl.check")       // whose limit stands elsewhere
	delete(c.requests, "cl.bucket|take") // before which others have filled the bucket
	catalog.New().Each(func(command *catalog.Command) { c.uses[command.FullName()] = useOf(command) })
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

// Use returns what a call does, and the full name of its command, in lower case. A command of Redis's own, of which this
// server knows little, Writes.
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

// Request reads a call that Decides. The key is a slice of the line's arguments.
func (c *Calls) Request(name string, line *Line) (q store.Request, err error) {
	if err := c.requests[name](&q, line.DB, line.Args, c.reading, nil); err != nil {
		return q, callError{name, err}
	}
	return q, nil
}

// callError is what a server would reply to the call.
type callError struct {
	name string
	err  error
}

func (e callError) Error() string {
	text := reply.Text(e.err)
	return e.name + ": " + strings.TrimPrefix(strings.TrimPrefix(text, "ERR "), "Cell error: Store error: ")
}

func (e callError) Unwrap() error { return e.err }
