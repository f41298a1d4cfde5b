package shard

import (
	"context"
	"testing"
)

func TestExclusiveFlushGivesMemoryBack(t *testing.T) {
	s := New()
	fill(t, s, t0, 1000, "k", 60)
	x := s.BeginAll(t0)
	x.Flush(context.Background(), 0)
	x.End()
	if segments, directory := segments(s); segments != 0 || directory != 0 {
		t.Errorf("%d segments and %d directory entries are left", segments, directory)
	}
}
