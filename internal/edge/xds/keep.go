package xds

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"

	"cellserver/internal/edge/xds/xdspb"
)

// Keep keeps the last good configuration for another start.
type Keep interface {
	// Load returns what was saved, nil for nothing.
	Load() ([]byte, error)
	Save(text []byte) error
}

const (
	keepPatience = 5 * time.Second // with a disk, before an acknowledgement
	keepNotice   = time.Minute     // between lines that say the same
)

var errSlowDisk = errors.New("the disk has not taken them within " + keepPatience.String())

// saving is an answer to save.
type saving struct {
	text []byte
	done chan error // has room
}

// save saves answers until there are no more.
func (c *Client) save() {
	for s := range c.unsaved {
		err := c.config.Keep.Save(s.text)
		if err == nil && c.unkept.Swap(false) {
			c.config.Log.Info("the limits for Envoy are kept again for another start")
		}
		s.done <- err
	}
}

// keep has an answer kept that was taken. It waits for a slow disk, but not for long, and for one that fails
// it is only told: the limits are in use. The error is that of ctx.
func (c *Client) keep(ctx context.Context, answer *xdspb.DiscoveryResponse) error {
	if c.config.Keep == nil {
		return nil
	}
	text, err := proto.Marshal(answer)
	if err == nil {
		s := saving{text, make(chan error, 1)}
		select {
		case <-c.unsaved: // an older one that waits for the disk
		default:
		}
		c.unsaved <- s
		late := time.NewTimer(keepPatience)
		defer late.Stop()
		select {
		case err = <-s.done:
		case <-late.C:
			err = errSlowDisk
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err != nil {
		c.noteUnkept(err)
	}
	return nil
}

func (c *Client) noteUnkept(err error) {
	c.note(func(s *Status) { s.Unkept++ })
	now := time.Now()
	if first := !c.unkept.Swap(true); first || now.Sub(c.toldUnkept) >= keepNotice {
		c.toldUnkept = now
		c.config.Log.Error("the limits for Envoy are in use but not kept for another start, which would begin with older ones", "error", err,
			"hint", "see whether the disk of --data-dir is full or fails")
	}
}

// loadKept takes what an earlier process has kept. What cannot be read is left to be replaced.
func (c *Client) loadKept() {
	if c.config.Keep == nil {
		return
	}
	text, err := c.config.Keep.Load()
	if err == nil && text == nil {
		return
	}
	var answer *xdspb.DiscoveryResponse
	if err == nil {
		answer, err = decodeAnswer(text)
	}
	if err == nil {
		err = c.take(answer, true)
	}
	if err != nil {
		c.config.Log.Warn("the limits for Envoy that an earlier process has kept cannot be used; those of the server are awaited", "error", err)
	}
}
