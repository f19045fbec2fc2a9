package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// The exporter `recorder`: each request becomes a line of OTLP/JSON in FOLDER/SIGNAL. While there is a file
// FOLDER/refuse it takes nothing: it is unavailable, and asks for the delay that the file says, if any.
type recorder struct {
	component.StartFunc
	component.ShutdownFunc
	folder string
	mutex  sync.Mutex
}

type config struct {
	Folder string `mapstructure:"folder"`
}

func newRecorderFactory() exporter.Factory {
	level := component.StabilityLevelStable
	return exporter.NewFactory(
		component.MustNewType("recorder"),
		func() component.Config { return &config{} },
		exporter.WithTraces(func(_ context.Context, _ exporter.Settings, c component.Config) (exporter.Traces, error) {
			r := newRecorder(c)
			take, err := consumer.NewTraces(func(_ context.Context, traces ptrace.Traces) error {
				line, err := (&ptrace.JSONMarshaler{}).MarshalTraces(traces)
				return r.record("traces", line, err)
			})
			return struct {
				*recorder
				consumer.Traces
			}{r, take}, err
		}, level),
		exporter.WithMetrics(func(_ context.Context, _ exporter.Settings, c component.Config) (exporter.Metrics, error) {
			r := newRecorder(c)
			take, err := consumer.NewMetrics(func(_ context.Context, metrics pmetric.Metrics) error {
				line, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(metrics)
				return r.record("metrics", line, err)
			})
			return struct {
				*recorder
				consumer.Metrics
			}{r, take}, err
		}, level),
		exporter.WithLogs(func(_ context.Context, _ exporter.Settings, c component.Config) (exporter.Logs, error) {
			r := newRecorder(c)
			take, err := consumer.NewLogs(func(_ context.Context, logs plog.Logs) error {
				line, err := (&plog.JSONMarshaler{}).MarshalLogs(logs)
				return r.record("logs", line, err)
			})
			return struct {
				*recorder
				consumer.Logs
			}{r, take}, err
		}, level),
	)
}

func newRecorder(c component.Config) *recorder {
	return &recorder{folder: c.(*config).Folder}
}

func (r *recorder) record(signal string, line []byte, err error) error {
	if err != nil {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err := r.refusal(); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(r.folder, signal), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

func (r *recorder) refusal() error {
	delay, err := os.ReadFile(filepath.Join(r.folder, "refuse"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	refusal := status.New(codes.Unavailable, "told to refuse")
	if text := strings.TrimSpace(string(delay)); text != "" {
		wait, err := time.ParseDuration(text)
		if err != nil {
			return err
		}
		refusal, err = refusal.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
		if err != nil {
			return err
		}
	}
	// Noted, so that a test sees when it was asked.
	file, err := os.OpenFile(filepath.Join(r.folder, "refused"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(file, time.Now().UnixMilli())
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return refusal.Err()
}
