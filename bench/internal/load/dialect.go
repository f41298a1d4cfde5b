package load

// dialect is how one connection speaks a protocol.
type dialect interface {
	// fill returns the bytes of that many requests, valid until the next call.
	fill(requests int, keys sampler) []byte
	// feed counts the replies that end in b, and fails at the first error among them. Unused bytes are the
	// beginning of something that is fed again with the rest.
	feed(b []byte) (n counted, used int, err error)
}

// fixed fills batches of commands that differ in their keys only.
type fixed struct {
	command *Command
	batch   []byte
}

func newFixed(command *Command, pipeline int) fixed { return fixed{command, command.repeat(pipeline)} }

func (f *fixed) fill(requests int, keys sampler) []byte {
	size := len(f.command.wire)
	for i := range requests {
		f.command.put(f.batch[i*size:(i+1)*size], keys.next())
	}
	return f.batch[:requests*size]
}

// resp speaks RESP2.
type resp struct {
	fixed
	replies
}

// newDialect returns the dialect of a connection.
func (c *Command) newDialect(pipeline int) dialect {
	if c.web {
		return &web{fixed: newFixed(c, pipeline)}
	}
	return &resp{newFixed(c, pipeline), replies{limited: c.limited}}
}
