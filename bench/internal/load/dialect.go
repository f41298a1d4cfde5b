package load

// dialect is how one connection speaks a protocol.
type dialect interface {
	filler
	// feed counts the replies that end in b, and fails at the first error among them. Unused bytes are the
	// beginning of something that is fed again with the rest.
	feed(b []byte) (n counted, used int, err error)
}

type filler interface {
	// fill returns the bytes of that many requests, valid until the next call.
	fill(requests int, keys sampler) []byte
}

// fixed fills batches of commands that differ in their keys and calls only.
type fixed struct {
	command *Command
	batch   []byte
}

func newFixed(command *Command, pipeline int) fixed { return fixed{command, command.repeat(pipeline)} }

func (f *fixed) fill(requests int, keys sampler) []byte {
	size := len(f.command.wire)
	for i := range requests {
		request := f.batch[i*size : (i+1)*size]
		f.command.put(request, keys.next())
		if f.command.lastCall != nil {
			f.command.putCall(request, f.command.lastCall.Add(1))
		}
	}
	return f.batch[:requests*size]
}

// turns fills batches of two commands in turn; see Command.Then.
type turns struct {
	first, second fixed
	drawn         []drawn // by the batch of first that awaits its second
}

// drawn is what is written into a request.
type drawn struct{ key, call uint64 }

func (t *turns) fill(requests int, keys sampler) []byte {
	if len(t.drawn) > 0 {
		batch := t.second.of(t.drawn)
		t.drawn = t.drawn[:0]
		return batch
	}
	for range requests {
		d := drawn{key: keys.next()}
		if last := t.first.command.lastCall; last != nil {
			d.call = last.Add(1)
		}
		t.drawn = append(t.drawn, d)
	}
	return t.first.of(t.drawn)
}

// of encodes a request for each of all.
func (f *fixed) of(all []drawn) []byte {
	size := len(f.command.wire)
	for i, d := range all {
		request := f.batch[i*size : (i+1)*size]
		f.command.put(request, d.key)
		f.command.putCall(request, d.call)
	}
	return f.batch[:len(all)*size]
}

// resp speaks RESP2.
type resp struct {
	filler
	replies
}

// newDialect returns the dialect of a connection.
func (c *Command) newDialect(pipeline int) dialect {
	f := newFixed(c, pipeline)
	switch {
	case c.web:
		return &web{fixed: f}
	case c.then != nil:
		return &resp{&turns{first: f, second: newFixed(c.then, pipeline)}, replies{limited: c.limited}}
	}
	return &resp{&f, replies{limited: c.limited}}
}
