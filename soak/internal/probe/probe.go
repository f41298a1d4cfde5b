// Package probe measures how long another client waits for its replies. It is for Linux.
package probe

import (
	"bufio"
	"fmt"
	"net"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// Result is how long calls took from the times at which they were due, in increasing order. A call that came late because
// the one before it took long counts with that delay: others that wait do not send less.
type Result struct {
	Waits []time.Duration
	Stuck bool // calls were unanswered when patience ended; each counts with its time until then
}

// Call is a call that is made again and again.
type Call struct {
	Request  []byte
	Reply    int // length of the reply in lines
	Every    time.Duration
	For      time.Duration
	Patience time.Duration // from the start

	// AfterReply makes each call due when the one before it was answered and Every has passed: for what a busy server
	// may take in turns, where calls that come faster than their turns would only measure how long they were sent.
	AfterReply bool
}

// Run makes calls on a connection of its own, from a thread that neither waits for Go's scheduler nor for its timers.
func (c Call) Run(addr string) (Result, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	nc, err := net.Dial("tcp", addr) //nolint:noctx // to a server of this machine
	if err != nil {
		return Result{}, err
	}
	defer nc.Close()
	file, err := nc.(*net.TCPConn).File()
	if err != nil {
		return Result{}, err
	}
	defer file.Close()
	fd := int(file.Fd()) // which makes it block
	in := bufio.NewReader(blocking(fd))
	var r Result
	begin := time.Now()
	for due := begin; due.Sub(begin) < c.For; due = c.next(due) {
		if wait := time.Until(due); wait > 0 {
			pause := syscall.NsecToTimespec(int64(wait))
			_ = syscall.Nanosleep(&pause, nil)
		}
		if !r.Stuck {
			err := c.call(fd, in, time.Until(begin.Add(c.Patience)))
			r.Stuck = err == errStuck //nolint:errorlint // it is never wrapped
			if err != nil && !r.Stuck {
				return r, err
			}
		}
		r.Waits = append(r.Waits, time.Since(due))
	}
	slices.Sort(r.Waits)
	return r, nil
}

// next returns when the call after the one that was due is due.
func (c Call) next(due time.Time) time.Time {
	if c.AfterReply {
		return time.Now().Add(c.Every)
	}
	return due.Add(c.Every)
}

const errStuck = syscall.EAGAIN

// call sends a request and reads its reply, for patience at most.
func (c Call) call(fd int, in *bufio.Reader, patience time.Duration) error {
	timeout := syscall.NsecToTimeval(int64(max(patience, time.Millisecond)))
	if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &timeout); err != nil {
		return err
	}
	if _, err := blocking(fd).Write(c.Request); err != nil {
		return err
	}
	for i := range c.Reply {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		if i == 0 && line[0] == '-' {
			return nil // an error is an answer, too
		}
	}
	return nil
}

// blocking is a socket whose reads and writes are system calls that wait.
type blocking int

func (b blocking) Read(p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(b), p)
		if err == syscall.EINTR { //nolint:errorlint // it is never wrapped
			continue
		}
		if n == 0 && err == nil {
			err = fmt.Errorf("the server closed the connection")
		}
		return max(n, 0), err
	}
}

func (b blocking) Write(p []byte) (int, error) {
	n, err := syscall.Write(int(b), p)
	return max(n, 0), err
}
