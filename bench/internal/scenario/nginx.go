package scenario

import (
	"context"

	"cellserver/bench/internal/control"
	"cellserver/bench/internal/load"
	"cellserver/bench/internal/peer"
	"cellserver/bench/internal/report"
)

// behindNginx measures what auth_request of nginx costs it and its limiter, over connections that are kept.
func (s *Suite) behindNginx(ctx context.Context) error {
	if !s.have(peer.Nginx) {
		return nil
	}
	var started servers
	defer started.stop()
	page, unlimited, err := peer.Pages()
	if err != nil {
		return err
	}
	lanes, order := map[string]*lane{}, []*lane(nil)
	for _, one := range []struct {
		name  string
		start func() (*peer.Server, error)
	}{
		{peer.Cellserver, func() (*peer.Server, error) { return s.Kit.StartDoor(ctx, control.HTTP) }},
		{peer.EmptyHTTP, func() (*peer.Server, error) { return s.Kit.StartControl(ctx, control.HTTP) }},
		{peer.EmptyFastHTTP, func() (*peer.Server, error) { return s.Kit.StartControl(ctx, control.FastHTTP) }},
	} {
		limiter, err := started.add(one.start())
		if err != nil {
			return err
		}
		nginx, err := started.add(s.Kit.StartNginx(ctx, limiter.Addr))
		if err != nil {
			return err
		}
		at := func(name string, command load.Command) *lane {
			l := s.lane("nginx", name, nginx, s.config(nginx, command), load.Plan{Duration: s.Window})
			l.limiter = limiter
			order = append(order, l)
			return l
		}
		if one.name == peer.Cellserver {
			at("nobody", unlimited)
		}
		lanes[one.name] = at(one.name, page)
	}
	if err := s.interleave(ctx, order); err != nil {
		return err
	}
	s.goal(ratio("behind nginx: CPU per check, by that of "+peer.EmptyHTTP, 1, lanes[peer.Cellserver], lanes[peer.EmptyHTTP], report.LimiterCPU))
	return nil
}
