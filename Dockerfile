# One image for api, worker, scheduler, migrate and dashboard: `docker run sume-jobs COMMAND`, see `sume-jobs --help`.
# A handler of yours: FROM sume-jobs, COPY its package, and set PYTHONPATH and HANDLER.

FROM python:3.13-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
# Every wheel of the lock file, each checked against its hash; what follows installs from these alone.
COPY requirements.lock ./
RUN pip download --no-deps --only-binary=:all: --require-hashes --dest /wheels --requirement requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY api ./api
COPY scheduler ./scheduler
COPY shared ./shared
COPY worker ./worker
# The image holds what production needs: no test tools, no sandbox servers, no pip.
RUN pip install --no-index --find-links /wheels hatchling \
    && pip wheel --no-index --no-deps --no-build-isolation --wheel-dir /dist . \
    && python -m venv --without-pip /opt/sume-jobs \
    && pip --python /opt/sume-jobs/bin/python install --no-index --find-links /wheels \
        "sume-jobs[dashboard] @ file://$(ls /dist/*.whl)"

FROM python:3.13-slim
ENV PATH=/opt/sume-jobs/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    STORAGE_URL=file:///data/artifacts
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /data --shell /usr/sbin/nologin sume \
    && install --directory --owner=sume --group=sume /data /data/artifacts
COPY --from=build /opt/sume-jobs /opt/sume-jobs
USER 10001:10001
# No `.env` lies here: a container is configured by its environment alone.
WORKDIR /data
VOLUME /data/artifacts
EXPOSE 8000 8001 9181
STOPSIGNAL SIGTERM
ENTRYPOINT ["sume-jobs"]
CMD ["--help"]
