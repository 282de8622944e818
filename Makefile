# The front door. Each target does its own set-up: it says what is missing, and installs it where it may.
.PHONY: help demo test fuzz build lint

help: ## what there is
	@sed -n 's/^\([a-z]*\):.*## /make \1	/p' Makefile

demo: ## the story of a lost answer, told by real processes over a simulated engine
	@scripts/demo.sh

test: ## every test; one group with T=engine (crash, engine, fuzz, startup, house, holes, unit)
	@scripts/test.sh $(T)

fuzz: ## what tests/fuzz checks, led by coverage: SECONDS_EACH=60 for each subject, or for one with S=subject
	@scripts/fuzz.sh $(S)

build: ## the release binary; the last line is its path
	@scripts/build.sh

lint: ## formatting, clippy, rustdoc, dependencies, shell scripts
	@scripts/lint.sh
