package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
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
		return r, json.NewDecoder(response.Body).Decode(&r)
	case http.StatusNotFound:
		return r, errNoRecord
	}
	return r, fmt.Errorf("the model's record: %s", response.Status)
}

// settleByRecord settles what the model has written down, once it has ended. It leaves the hold as it is if
// the model does not tell that for as long as a hold is.
func (p *proxy) settleByRecord(ctx context.Context, h *cellserver.Hold, model string) {
	const pause, grace = 100 * time.Millisecond, 5 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.ttl)
	defer cancel()
	for began := time.Now(); ctx.Err() == nil; time.Sleep(pause) {
		r, err := p.record(ctx, h.ID())
		switch {
		case err == nil && r.Status != "in_progress":
			warn(h.Settle(ctx, r.Usage.units(model)...))
			return
		case errors.Is(err, errNoRecord) && time.Since(began) > grace: // the call has not got there
			warn(h.Cancel(ctx))
			return
		}
	}
}

// resume settles a hold of an earlier process.
func (p *proxy) resume(ctx context.Context, e entry) {
	p.settleByRecord(ctx, p.limiter.Resume(e.ID, e.Counted, e.Uses...), e.Model)
	log.Printf("hold %s of an earlier process: done", e.ID)
}
