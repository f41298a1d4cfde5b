package scenario

import (
	"context"
	"fmt"

	"cellserver/bench/internal/inprocess"
)

// inProcess measures limiters that are libraries. It has no goal, because a server is not a library.
func (s *Suite) inProcess(ctx context.Context) error {
	for _, keys := range []int{10_000, 1_000_000} {
		for _, name := range inprocess.Names() {
			s.Progress(fmt.Sprintf("in-process: %s, %d keys", name, keys))
			limiter, err := s.Limiter(ctx, name, keys)
			if err != nil {
				return err
			}
			s.Results.Limiters = append(s.Results.Limiters, limiter)
		}
	}
	return nil
}
