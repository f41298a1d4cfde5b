package argument

import (
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
)

// Number reads a number by redis-cell's grammar.
func Number(arg []byte) (int64, error) {
	n, ok := integer(arg)
	if !ok {
		return 0, notInteger(arg)
	}
	return n, nil
}

func notInteger(arg []byte) error {
	return reply.Cell("Couldn't parse as integer: " + resp.Printable(arg))
}

// Numbers fills into from args.
func Numbers(into []int64, args [][]byte) (err error) {
	for i := range into {
		if into[i], err = Number(args[i]); err != nil {
			return err
		}
	}
	return nil
}
