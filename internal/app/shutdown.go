package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cellserver/internal/edge/server"
)

// shutdownGrace is how long what was cut off at --shutdown-timeout may take to end.
const shutdownGrace = time.Second

// backgroundGrace is how long a script or another command in the background may go on when the shutdown has begun.
const backgroundGrace = 50 * time.Millisecond

// end ends the server gracefully. It returns shutdownGrace after --shutdown-timeout at the latest, or with a data
// directory after twice that, whatever does not end, and then with an error: the process is about to exit, so it can be left
// behind.
func (a *app) end(endBackground func()) error {
	cutOff, ended := make(chan error, 1), make(chan struct{})
	go func() {
		cutOff <- a.shutdown()
		endBackground()
		a.parts.wait()
		close(ended)
	}()
	most := a.options.ShutdownTimeout + shutdownGrace
	if a.storage.Keeper != nil {
		most += a.options.ShutdownTimeout // clients that do not end must not cost what the disk has still to take
	}
	late := time.NewTimer(most)
	defer late.Stop()
	hangs := ""
	select {
	case <-ended:
	case <-late.C:
		hangs = "; these parts do not end: " + a.parts.String()
	}
	select {
	case err := <-cutOff:
		if err != nil {
			hangs = "; " + err.Error() + hangs
		}
	default:
	}
	if hangs != "" {
		return fmt.Errorf("the shutdown was cut short after --shutdown-timeout (%s)%s", a.options.ShutdownTimeout, hangs)
	}
	if a.keepErr != nil {
		return a.keepErr
	}
	a.log.Info("stopped")
	return nil
}

// shutdown returns an error if connections do not end even though they are cut off.
func (a *app) shutdown() error {
	a.log.Info("shutting down", "clients", a.server.Stats().Connected, "timeout", a.options.ShutdownTimeout.String())
	ctx, cancel := context.WithTimeout(context.Background(), a.options.ShutdownTimeout)
	defer cancel()
	a.notifyStopping()
	defer time.AfterFunc(backgroundGrace, a.engine.EndBackground).Stop()
	err := a.server.Shutdown(ctx)
	if err != nil {
		a.log.Warn("some clients did not end in time and were cut off", "error", err)
	}
	a.web.Shutdown(ctx)
	if errors.Is(err, server.ErrStuck) {
		return err
	}
	return nil
}
