"""Classifies the pictures of a bucket. The results of each batch go to a file of its own, and at the end all results go
to one file.
"""

import json
import re

import boto3
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier


class PythonPredictor:
    def __init__(self, config, job_spec):
        if not config.get("dest_s3_dir"):
            raise Exception("the job's config has no dest_s3_dir")
        digits = load_digits()
        self.model = KNeighborsClassifier(3).fit(digits.data[:1000], digits.target[:1000])
        self.s3 = boto3.client("s3")
        self.bucket, directory = bucket_and_key(config["dest_s3_dir"])
        self.prefix = "%s/%s/" % (directory, job_spec["job_id"])

    def predict(self, payload, batch_id):
        classes = self.model.predict([self.pixels_of(path) for path in payload])
        results = [{"path": path, "class": int(digit)} for path, digit in zip(payload, classes)]
        self.write(batch_id + ".json", results)

    def on_job_complete(self):
        results = []
        for page in self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=self.prefix):
            for entry in page["Contents"]:
                results += json.loads(self.read(self.bucket, entry["Key"]))
        self.write("aggregated_results.json", results)

    def pixels_of(self, path):
        # A PGM file: three lines, then a byte for each of 8 x 8 pixels.
        return list(self.read(*bucket_and_key(path)).split(b"\n", 3)[3])

    def read(self, bucket, key):
        return self.s3.get_object(Bucket=bucket, Key=key)["Body"].read()

    def write(self, name, results):
        self.s3.put_object(Bucket=self.bucket, Key=self.prefix + name, Body=json.dumps(results))


def bucket_and_key(path):
    return re.match("s3://(.+?)/(.+)", path).groups()
