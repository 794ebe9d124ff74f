package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/cert-manager/cert-manager/pkg/util/cmapichecker"
	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
)

// runCheck waits until the API server accepts requests for certificates, as `cmctl check api` does.
func runCheck(ctx context.Context, arguments []string) error {
	var limit time.Duration
	flags := pflag.NewFlagSet("check", pflag.ContinueOnError)
	flags.DurationVar(&limit, "wait", 0, "how long to wait")
	flags.BoolP("verbose", "v", false, "print every failure; always on")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() != 1 || flags.Arg(0) != "api" {
		return fmt.Errorf("unknown check: %v", flags.Args())
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	checker, err := cmapichecker.New(config, os.Getenv("POD_NAMESPACE"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := checker.Check(ctx)
		if err == nil {
			fmt.Println("The cert-manager API is ready")
			return nil
		}
		fmt.Println("Not ready:", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}
