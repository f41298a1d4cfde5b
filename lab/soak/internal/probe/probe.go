// Package probe measures how long another client waits for its replies. It is for Linux.
package probe

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// Call is a call that is made again and again.
type Call struct {
	Request  []byte
	Reply    int // length of the reply in lines
	Every    time.Duration
	For      time.Duration
	Patience time.Duration // from the start, for all replies

	// OneAtATime makes a call due when the one before it was answered and Every has passed. Without it calls
	// are sent when they are due, however many are unanswered: those who come while a server stands do not
	// know that.
	OneAtATime bool
}

// Result lists durations of calls from their due times, in increasing order.
type Result struct {
	Waits []time.Duration
	Stuck bool // calls were unanswered when patience ended; each counts with its time until then
}

// Run makes calls on a connection of its own, from threads that wait neither for Go's scheduler nor for its
// timers.
func (c Call) Run(addr string) (Result, error) {
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
	fd := int(file.Fd()) // makes reads and writes block
	timeout := syscall.NsecToTimeval(int64(c.Patience))
	for _, option := range []int{syscall.SO_RCVTIMEO, syscall.SO_SNDTIMEO} {
		if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, option, &timeout); err != nil {
			return Result{}, os.NewSyscallError("setsockopt", err)
		}
	}
	dues, answered, sent := make(chan time.Time, c.For/c.Every+1), make(chan struct{}, 1), make(chan error, 1)
	go func() {
		defer close(dues)
		sent <- c.send(fd, dues, answered)
	}()
	r, err := c.receive(fd, dues, answered)
	_ = syscall.Shutdown(fd, syscall.SHUT_RDWR)
	if errSent := <-sent; err == nil && !r.Stuck {
		err = errSent
	}
	return r, err
}

// send sends each call when it is due, and announces that time before.
func (c Call) send(fd int, dues chan<- time.Time, answered <-chan struct{}) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := time.Now()
	for due := begin; due.Sub(begin) < c.For; due = due.Add(c.Every) {
		if wait := time.Until(due); wait > 0 {
			pause := syscall.NsecToTimespec(int64(wait))
			_ = syscall.Nanosleep(&pause, nil)
		}
		dues <- due
		if _, err := syscall.Write(fd, c.Request); err != nil {
			return os.NewSyscallError("write", err)
		}
		if c.OneAtATime {
			<-answered
			due = time.Now()
		}
	}
	return nil
}

// receive reads the replies.
func (c Call) receive(fd int, dues <-chan time.Time, answered chan<- struct{}) (Result, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(answered)
	var r Result
	in := bufio.NewReader(blocking(fd))
	giveUp := time.Now().Add(c.Patience)
	for due := range dues {
		err := c.readReply(in)
		r.Waits = append(r.Waits, time.Since(due))
		if r.Stuck = errors.Is(err, syscall.EAGAIN) || time.Now().After(giveUp); r.Stuck {
			break
		}
		if err != nil {
			return r, err
		}
		if c.OneAtATime {
			answered <- struct{}{}
		}
	}
	for range len(dues) { // sent and unanswered
		r.Waits = append(r.Waits, time.Since(<-dues))
	}
	slices.Sort(r.Waits)
	return r, nil
}

func (c Call) readReply(in *bufio.Reader) error {
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

// blocking is a socket whose reads are system calls that wait.
type blocking int

func (b blocking) Read(p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(b), p)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return 0, fmt.Errorf("read: %w", err)
		case n == 0:
			return 0, io.ErrUnexpectedEOF
		}
		return n, nil
	}
}
