# docker build -t cellserver .
# CELLSERVER_REQUIREPASS=$(cat password) \
#   docker run -p 127.0.0.1:6380:6380 -p 127.0.0.1:9380:9380 -e CELLSERVER_REQUIREPASS cellserver
#
# In the container both addresses are open to its network; -p decides what is published. All clients are outside of the
# container, so protected mode refuses them unless there is a password: set one as above, or mount a file, such as
# -v ./users.acl:/users.acl:ro -e CELLSERVER_ACLFILE=/users.acl. The metrics require no password.
#
# What is known survives the container with -v cellserver:/var/lib/cellserver -e CELLSERVER_DATA_DIR=/var/lib/cellserver.

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -tags grpcnotrace -trimpath -ldflags='-s -w' -o /cellserver ./cmd/cellserver
RUN install -d -m 700 /data
# Envoy Gateway and others start /bin/ratelimit, in the place of envoyproxy/ratelimit (docs/RATELIMIT.md).
RUN install -d /links/bin && ln -s /cellserver /links/bin/ratelimit

FROM scratch
COPY --from=build /cellserver /cellserver
COPY --from=build /links/ /
COPY --from=build --chown=65532:65532 /data /var/lib/cellserver
LABEL org.opencontainers.image.title=cellserver \
      org.opencontainers.image.description="Rate limiter that speaks the Redis protocol" \
      org.opencontainers.image.licenses=MIT
USER 65532:65532
ENV CELLSERVER_ADDR=:6380 CELLSERVER_METRICS_ADDR=:9380
EXPOSE 6380 9380
HEALTHCHECK --interval=10s --timeout=5s --start-period=15m CMD ["/cellserver", "health"]
ENTRYPOINT ["/cellserver"]
