package server

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestConnectionWithoutADescriptor(t *testing.T) {
	for _, ioThreads := range []int{0, 1} {
		l := newPipeListener()
		start(t, ioThreads, l, nil)
		nc := l.dial()
		defer nc.Close()
		go func() { _, _ = io.WriteString(nc, "a\nwait\nlong\nclose\n") }()
		ended(t, nc, "a\n"+strings.Repeat("x", 100_000)+"bye\n")
	}
}

func TestAcceptBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipeListener()
		l.fail.Store(12)
		began := time.Now()
		s := start(t, 0, l, nil)
		nc := l.dial()
		defer nc.Close()
		// 5, 10, 20, 40, 80, 160, 320, 640 ms, and then 1 s each
		if took, want := time.Since(began), 5275*time.Millisecond; took != want {
			t.Errorf("twelve failures took %v, want %v", took, want)
		}
		synctest.Wait()
		if n := strings.Count(s.log.String(), "cannot accept connections"); n != 1 {
			t.Errorf("the failures were logged %d times, want once", n)
		}
	})
}
