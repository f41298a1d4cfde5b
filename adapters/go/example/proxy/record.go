package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	cellserver "cellserver/adapters/go"
)

// record is what the model has written down of a call.
type record struct {
	Model  string `json:"model"`
	Status string `json:"status"`
	Usage  usage  `json:"usage"`
}

var errNoRecord = errors.New("the model has no such call")

func (p *proxy) record(ctx context.Context, id string) (r record, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.model+"/v1/chat/completions/"+id, nil)
	if err != nil {
		return r, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return r, err
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
		return r, json.NewDecoder(io.LimitReader(response.Body, maxBody)).Decode(&r)
	case http.StatusNotFound:
		return r, errNoRecord
	}
	return r, fmt.Errorf("the model's record: %s", response.Status)
}

// settleByRecord settles what the model has written down, once it has ended. If the model does not tell that
// for as long as a hold is, it settles what was counted, or without that leaves the hold to its time.
func (p *proxy) settleByRecord(ctx context.Context, h *cellserver.Hold, model string, counted usage) {
	const first, last, grace = 50 * time.Millisecond, 2 * time.Second, 5 * time.Second
	defer h.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.ttl)
	defer cancel()
	defer h.Keep(ctx)()
	began, pause := time.Now(), first
	for ctx.Err() == nil {
		r, err := p.record(ctx, h.ID())
		switch {
		case err == nil && r.Status != "in_progress" && r.Usage.isSane():
			warn(h.Settle(ctx, r.Usage.units(model)...))
			return
		case errors.Is(err, errNoRecord) && !counted.told() && time.Since(began) > grace: // the call has not got there
			warn(h.Cancel(ctx))
			return
		}
		time.Sleep(pause)
		pause = min(2*pause, last)
	}
	if counted.told() {
		warn(h.Settle(ctx, counted.units(model)...))
	}
}

// resume settles a hold of an earlier process.
func (p *proxy) resume(ctx context.Context, e entry) {
	p.settleByRecord(ctx, p.limiter.Resume(e.ID, e.Counted, e.Uses...), e.Model, usage{})
}
