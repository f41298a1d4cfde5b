package scenario

import (
	"context"
	"fmt"

	"cellserver/bench/internal/load"
	"cellserver/bench/internal/peer"
	"cellserver/bench/internal/report"
)

// script is a limiter in Lua, as libraries have it, compared with redis-server.
type script struct {
	name    string
	prepare func(ctx context.Context, s *peer.Server) (load.Command, error)
	most    float64 // times redis-server's CPU time
}

func scripts() []script {
	const look = "local ttl = redis.call('PTTL', KEYS[1]) if ttl <= 0 then redis.call('SET', KEYS[1], 1, 'PX', ARGV[1]) " +
		"return {1, tonumber(ARGV[1])} end return {redis.call('INCR', KEYS[1]), ttl}"
	const loop = "local all = {} for i = 1, #KEYS do local n = redis.call('INCR', KEYS[i]) " +
		"if n == 1 then redis.call('PEXPIRE', KEYS[i], ARGV[1]) end all[#all + 1] = n end return all"
	const count = "local n = redis.call('INCR', KEYS[1]) if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end return n"
	const window = "3600000"
	return []script{
		{"INCR and PEXPIRE", peer.Script(count, "1", "count:"+load.KeyMark, window), 0.5},
		{"PTTL, then SET or INCR", peer.Script(look, "1", "look:"+load.KeyMark, window), 0.5},
		{redisRate, peer.RedisRate, 0.5},
		{"a loop over two keys, interpreted", peer.Script(loop, "2", "a:"+load.KeyMark, "b:"+load.KeyMark, window), 3},
	}
}

// scripts compares what limiters in Lua cost with redis-server.
func (s *Suite) scripts(ctx context.Context) error {
	var started servers
	defer started.stop()
	pair, err := s.cellAndSet(ctx, &started)
	if err != nil {
		return err
	}
	var all []contestant
	for _, one := range scripts() {
		for _, on := range pair {
			command, err := one.prepare(ctx, on.server)
			if err != nil {
				return fmt.Errorf("%s: %w", one.name, err)
			}
			name := one.name
			if on.name == set {
				name += ", redis-server"
			}
			all = append(all, contestant{name, on.server, command})
		}
	}
	depths := []int{16, 128}
	lanes, err := s.raceAt(ctx, "scripts", depths, usualKeys, all)
	if err != nil {
		return err
	}
	for i, one := range scripts() {
		ours, theirs := lanes[all[2*i].name], lanes[all[2*i+1].name]
		for _, depth := range depths {
			text := fmt.Sprintf("%s, %d pipelined: CPU per script, by redis-server's", one.name, depth)
			s.goal(ratio(text, one.most, ours[depth], theirs[depth], report.CPU))
		}
	}
	return nil
}
