package main

import (
	"context"
	"net"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // The server reads what is compressed with it.
)

type partial struct {
	plogotlp.UnimplementedGRPCServer
}

func (*partial) Export(_ context.Context, _ plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	response := plogotlp.NewExportResponse()
	response.PartialSuccess().SetRejectedLogRecords(1)
	response.PartialSuccess().SetErrorMessage("one too many")
	return response, nil
}

func servePartially(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	plogotlp.RegisterGRPCServer(server, &partial{})
	return server.Serve(listener)
}
